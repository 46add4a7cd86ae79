from django.db import migrations, models


class Migration(migrations.Migration):
    """Rename fields in Django's state. The columns keep their names, because the previous release reads them."""

    dependencies = [
        ("alarms", "0009_validate_queues_without_a_worker"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="alarmround",
                    name="unseen",
                    field=models.JSONField(db_column="unseen", default=list),
                ),
                migrations.RenameField(
                    model_name="alarmround",
                    old_name="unseen",
                    new_name="unchecked_kinds",
                ),
            ],
        ),
    ]
