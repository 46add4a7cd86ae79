from django.contrib.postgres.operations import RemoveIndexConcurrently
from django.db import migrations


class Migration(migrations.Migration):
    """Drop an index that has the same order as the primary key."""

    atomic = False
    dependencies = [
        ("netbox_sync", "0003_l2vpns_of_others"),
    ]

    operations = [
        RemoveIndexConcurrently(
            model_name="netboxrun",
            name="netbox_run_newest_first",
        ),
    ]
