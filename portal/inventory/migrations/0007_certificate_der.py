from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("inventory", "0006_observedrouter_policing")]

    operations = [migrations.AddField("routercertificate", "der", models.BinaryField(null=True))]
