from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("inventory", "0002_topology_version")]

    operations = [
        migrations.AddField(
            model_name="observedrouter",
            name="vpp_away_since",
            field=models.DateTimeField(null=True),
        ),
    ]
