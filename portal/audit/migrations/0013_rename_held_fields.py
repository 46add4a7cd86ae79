from django.db import migrations, models


class Migration(migrations.Migration):
    """Rename fields in Django's state. The columns keep their names, because the previous release reads them."""

    dependencies = [
        ("audit", "0012_rename_fields"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="holdevent",
                    name="held_by",
                    field=models.CharField(db_column="held_by", max_length=150),
                ),
                migrations.RenameField(
                    model_name="holdevent",
                    old_name="held_by",
                    new_name="reserved_by",
                ),
                migrations.AlterField(
                    model_name="routerevent",
                    name="held_since",
                    field=models.DateTimeField(blank=True, db_column="held_since", null=True),
                ),
                migrations.RenameField(
                    model_name="routerevent",
                    old_name="held_since",
                    new_name="locked_since",
                ),
                migrations.AlterField(
                    model_name="orderevent",
                    name="state",
                    field=models.CharField(
                        choices=[
                            ("acknowledged", "Acknowledged"),
                            ("held", "Pending approval"),
                            ("inProgress", "In Progress"),
                            ("pendingCancellation", "Pending Cancellation"),
                            ("completed", "Completed"),
                            ("failed", "Failed"),
                            ("rejected", "Rejected"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="acknowledged",
                        max_length=20,
                    ),
                ),
            ],
        ),
    ]
