from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("vll", "0016_reconciliations_requested"),
    ]

    operations = [
        migrations.AddField(
            model_name="vllend",
            name="vlan_loss",
            field=models.JSONField(null=True),
        ),
    ]
