from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("alarms", "0004_lines_whose_frames_a_router_drops"),
    ]

    operations = [
        ValidateConstraint(model_name="alarm", name="an_alarm_is_of_a_known_kind"),
    ]
