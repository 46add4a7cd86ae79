from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("inventory", "0014_vpp_absent"),
    ]

    operations = [
        migrations.AddField(
            model_name="observedrouter",
            name="vpp_hangs",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
