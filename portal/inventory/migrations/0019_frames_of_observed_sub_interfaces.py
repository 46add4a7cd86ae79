from django.db import migrations, models


class Migration(migrations.Migration):
    """Add the frames that a sub-interface takes of its port, which agents report since this release."""

    dependencies = [("inventory", "0018_parent_of_observed_interfaces")]

    operations = [
        migrations.AddField(
            model_name="observedinterface",
            name="frames",
            field=models.JSONField(null=True),
        )
    ]
