from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("inventory", "0005_enrolment_and_maintenance")]

    operations = [migrations.AddField("routercertificate", "der", models.BinaryField(null=True))]
