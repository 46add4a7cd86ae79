from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("inventory", "0005_enrolment_and_maintenance")]

    operations = [
        migrations.AddField(
            model_name="observedrouter",
            name="policing",
            field=models.CharField(
                choices=[("none", "none"), ("port", "port"), ("subinterface", "subinterface")],
                default="none",
                max_length=12,
            ),
        ),
    ]
