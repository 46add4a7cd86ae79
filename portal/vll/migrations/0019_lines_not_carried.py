from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("vll", "0018_index_of_vlan_losses"),
    ]

    operations = [
        migrations.AddField(
            model_name="vll",
            name="not_carried_since",
            field=models.DateTimeField(null=True),
        ),
    ]
