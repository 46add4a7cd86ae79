from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("inventory", "0006_path_watch"),
    ]

    operations = [
        migrations.AddField(
            model_name="observedrouter",
            name="probes",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
