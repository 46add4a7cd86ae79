from django.db import migrations, models


class Migration(migrations.Migration):
    """Rename fields in Django's state. The columns keep their names, because the previous release reads them."""

    dependencies = [
        ("events", "0002_retry_of_failed_notifications"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveIndex(
                    model_name="event",
                    name="event_untold",
                ),
                migrations.AlterField(
                    model_name="event",
                    name="untold",
                    field=models.BooleanField(db_column="untold", db_default=False, default=False),
                ),
                migrations.RenameField(
                    model_name="event",
                    old_name="untold",
                    new_name="pending_notification",
                ),
                migrations.AddIndex(
                    model_name="event",
                    index=models.Index(
                        condition=models.Q(("pending_notification", True)), fields=["id"], name="event_untold"
                    ),
                ),
            ],
        ),
    ]
