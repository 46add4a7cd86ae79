from django.db import migrations, models


class Migration(migrations.Migration):
    """Rename fields in Django's state. The columns keep their names, because the previous release reads them."""

    dependencies = [
        ("netbox_sync", "0004_no_second_index"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="netboxrun",
                    name="asked_at",
                    field=models.DateTimeField(db_column="asked_at"),
                ),
                migrations.RenameField(
                    model_name="netboxrun",
                    old_name="asked_at",
                    new_name="requested_at",
                ),
                migrations.AlterField(
                    model_name="netboxrun",
                    name="asked_by",
                    field=models.CharField(blank=True, db_column="asked_by", max_length=150),
                ),
                migrations.RenameField(
                    model_name="netboxrun",
                    old_name="asked_by",
                    new_name="requested_by",
                ),
            ],
        ),
    ]
