from django.db import migrations, models


class Migration(migrations.Migration):
    """Rename fields in Django's state. The columns keep their names, because the previous release reads them."""

    dependencies = [
        ("audit", "0011_router_name_without_a_line_end"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="routerfreezeevent",
                    name="looked_by",
                    field=models.CharField(blank=True, db_column="looked_by", max_length=150),
                ),
                migrations.RenameField(
                    model_name="routerfreezeevent",
                    old_name="looked_by",
                    new_name="acknowledged_by",
                ),
                migrations.AlterField(
                    model_name="routerfreezeevent",
                    name="end_asked_at",
                    field=models.DateTimeField(blank=True, db_column="end_asked_at", null=True),
                ),
                migrations.RenameField(
                    model_name="routerfreezeevent",
                    old_name="end_asked_at",
                    new_name="end_requested_at",
                ),
            ],
        ),
    ]
