from django.db import migrations, models


class Migration(migrations.Migration):
    """Rename fields in Django's state. The columns keep their names, because the previous release reads them."""

    dependencies = [
        ("inventory", "0020_rename_fields"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="observedrouter",
                    name="generation_held",
                    field=models.BigIntegerField(db_column="generation_held", null=True),
                ),
                migrations.RenameField(
                    model_name="observedrouter",
                    old_name="generation_held",
                    new_name="generation_stored",
                ),
                migrations.AlterField(
                    model_name="router",
                    name="held_since",
                    field=models.DateTimeField(blank=True, db_column="held_since", null=True),
                ),
                migrations.RenameField(
                    model_name="router",
                    old_name="held_since",
                    new_name="locked_since",
                ),
            ],
        ),
    ]
