from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("vll", "0002_triggers")]

    operations = [
        migrations.AddField(
            model_name="vllend",
            name="observed_in_sync",
            field=models.BooleanField(null=True),
        ),
    ]
