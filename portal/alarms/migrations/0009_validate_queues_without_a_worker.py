from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("alarms", "0008_queues_without_a_worker"),
    ]

    operations = [
        ValidateConstraint(model_name="alarm", name="an_alarm_is_of_a_known_kind"),
    ]
