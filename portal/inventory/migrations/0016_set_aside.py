from django.db import migrations, models
from django.db.models import Value


class Migration(migrations.Migration):
    dependencies = [
        ("inventory", "0015_vpp_hangs"),
    ]

    operations = [
        migrations.AddField(
            model_name="observedrouter",
            name="set_aside",
            field=models.JSONField(db_default=Value([], models.JSONField()), default=list),
        ),
    ]
