from django.db import migrations, models


class Migration(migrations.Migration):
    """Rename fields in Django's state. The columns keep their names, because the previous release reads them."""

    dependencies = [
        ("notifications", "0004_page_changes"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveConstraint(
                    model_name="mailline",
                    name="what_is_said_of_a_line_is_known",
                ),
                migrations.AlterField(
                    model_name="mailline",
                    name="said",
                    field=models.CharField(
                        choices=[
                            ("down", "Down"),
                            ("up", "Up"),
                            ("drift", "Drift"),
                            ("silent", "Silent"),
                            ("black_hole", "Black Hole"),
                        ],
                        db_column="said",
                        max_length=10,
                    ),
                ),
                migrations.RenameField(
                    model_name="mailline",
                    old_name="said",
                    new_name="status",
                ),
                migrations.AlterField(
                    model_name="webhook",
                    name="resting_until",
                    field=models.DateTimeField(db_column="resting_until", null=True),
                ),
                migrations.RenameField(
                    model_name="webhook",
                    old_name="resting_until",
                    new_name="paused_until",
                ),
                migrations.AddConstraint(
                    model_name="mailline",
                    constraint=models.CheckConstraint(
                        condition=models.Q(("status__in", ["down", "up", "drift", "silent", "black_hole"])),
                        name="what_is_said_of_a_line_is_known",
                    ),
                ),
            ],
        ),
    ]
