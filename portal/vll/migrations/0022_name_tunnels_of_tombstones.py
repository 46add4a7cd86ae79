"""Tombstones that are there already: which tunnels their routers may have, and a keeper for each alone."""

import uuid
from typing import Any

from django.db import migrations


def name_tunnels(apps: Any, schema_editor: Any) -> None:
    """All that is leased for the line or not free again yet: nobody knows any more which of them it was."""
    named = apps.get_model("vll", "TombstoneTunnel").objects
    for tombstone in apps.get_model("vll", "VllTombstone").objects.order_by("pk"):
        orders = apps.get_model("vll", "Order").objects.filter(vll=tombstone.vll_id)
        holders = [tombstone.leases, tombstone.vll_id, *orders.values_list("pk", flat=True)]
        for field, model in (("vni", "VniLease"), ("gre_pair", "GrePairLease")):
            leases = apps.get_model("allocation", model).objects.filter(holder__in=holders)
            for lease in leases:
                named.create(tombstone=tombstone, **{field: lease})
            leases.filter(released_at__isnull=False).update(free_at=None)


def part_keepers(apps: Any, schema_editor: Any) -> None:
    """The ends that one change moved shared the holder of what they left."""
    seen = set()
    for tombstone in apps.get_model("vll", "VllTombstone").objects.order_by("pk"):
        shared, alone = tombstone.leases, uuid.uuid4()
        if shared in seen:
            for model in ("PortVlanLease", "BandwidthBooking", "CoreBooking"):
                leases = apps.get_model("allocation", model).objects
                leases.filter(holder=shared, side=tombstone.side).update(holder=alone)
            tombstone.leases = alone
            tombstone.save(update_fields=["leases"])
        seen.add(tombstone.leases)


class Migration(migrations.Migration):
    dependencies = [("vll", "0021_tombstone_tunnels")]

    operations = [
        migrations.RunPython(name_tunnels, migrations.RunPython.noop),
        migrations.RunPython(part_keepers, migrations.RunPython.noop),
    ]
