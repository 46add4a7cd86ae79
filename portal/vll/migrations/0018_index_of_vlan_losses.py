from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("vll", "0017_vlan_loss_of_an_end"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="vllend",
            index=models.Index(
                condition=models.Q(("vlan_loss__isnull", False)),
                fields=["port"],
                name="vll_end_loses_its_vlan",
            ),
        ),
    ]
