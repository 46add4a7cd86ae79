from django.db import migrations, models


class Migration(migrations.Migration):
    """The frames of its port that a sub-interface takes, as agents report them since this release."""

    dependencies = [("inventory", "0018_parent_of_observed_interfaces")]

    operations = [
        migrations.AddField(
            model_name="observedinterface",
            name="frames",
            field=models.JSONField(null=True),
        )
    ]
