from django.db import migrations, models

from portal.alarms.kinds import kind_choices


class Migration(migrations.Migration):
    """Read the choices of an alarm's kind from a function. The table does not change."""

    dependencies = [
        ("alarms", "0014_wrong_clocks"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="alarm",
                    name="kind",
                    field=models.CharField(choices=kind_choices, max_length=20),
                ),
            ],
        ),
    ]
