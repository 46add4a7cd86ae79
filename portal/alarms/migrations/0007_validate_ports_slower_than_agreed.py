from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("alarms", "0006_ports_slower_than_agreed"),
    ]

    operations = [
        ValidateConstraint(model_name="alarm", name="an_alarm_is_of_a_known_kind"),
    ]
