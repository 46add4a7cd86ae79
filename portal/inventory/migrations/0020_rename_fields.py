from django.db import migrations, models


class Migration(migrations.Migration):
    """Rename fields in Django's state. The columns keep their names, because the previous release reads them."""

    dependencies = [
        ("inventory", "0019_frames_of_observed_sub_interfaces"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="routerfreeze",
                    name="looked_by",
                    field=models.CharField(blank=True, db_column="looked_by", max_length=150),
                ),
                migrations.RenameField(
                    model_name="routerfreeze",
                    old_name="looked_by",
                    new_name="acknowledged_by",
                ),
                migrations.AlterField(
                    model_name="routerfreeze",
                    name="end_asked_at",
                    field=models.DateTimeField(blank=True, db_column="end_asked_at", null=True),
                ),
                migrations.RenameField(
                    model_name="routerfreeze",
                    old_name="end_asked_at",
                    new_name="end_requested_at",
                ),
                migrations.AlterField(
                    model_name="routersilence",
                    name="spoken_spans",
                    field=models.JSONField(
                        db_column="spoken_spans",
                        db_default=models.Value([], models.JSONField()),
                        default=list,
                    ),
                ),
                migrations.RenameField(
                    model_name="routersilence",
                    old_name="spoken_spans",
                    new_name="forwarded_spans",
                ),
            ],
        ),
    ]
