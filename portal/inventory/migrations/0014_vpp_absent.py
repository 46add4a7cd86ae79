from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("inventory", "0013_link_loads"),
    ]

    operations = [
        migrations.AddField(
            model_name="observedrouter",
            name="vpp_absent",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
