"""Books the routers' cores for lines and holds that were there before cores were booked."""

from collections import Counter
from typing import Any
from uuid import UUID

from django.db import migrations

from portal.allocation.capacity import dearest, end_load
from portal.core.transport import Encapsulation, Transport


def book(apps: Any, schema_editor: Any) -> None:
    allocation = {
        name: apps.get_model("allocation", name) for name in ("BandwidthBooking", "CoreBooking", "RouterLoad")
    }
    transports = _transports(apps)
    bookings, sums = [], Counter()
    for row in allocation["BandwidthBooking"].objects.select_related("port").order_by("pk"):
        # A hold, which has no transport yet, keeps what the dearest would need.
        transport = transports.get(row.holder, dearest(within_router=False))
        load, router = end_load(row.cir_bps, transport), row.port.router_id
        bookings.append(
            allocation["CoreBooking"](router_id=router, holder=row.holder, side=row.side, load=load)
        )
        sums[router] += load
    allocation["CoreBooking"].objects.bulk_create(bookings, batch_size=1000)
    allocation["RouterLoad"].objects.bulk_create(
        allocation["RouterLoad"](router_id=router, booked=booked) for router, booked in sums.items()
    )


def _transports(apps: Any) -> dict[UUID, Transport]:
    """By who holds a booking: a line, an order that changes one, or a line's tombstone."""
    lines = {
        pk: Transport.of(Encapsulation(encapsulation), family)
        for pk, encapsulation, family in apps.get_model("vll", "Vll").objects.values_list(
            "pk", "encapsulation", "family"
        )
    }
    changes = {
        pk: Transport.of(Encapsulation(after["encapsulation"]), after["family"])
        for pk, after in apps.get_model("vll", "Order")
        .objects.filter(after__isnull=False)
        .values_list("pk", "after")
    }
    left = {
        leases: lines[vll]
        for leases, vll in apps.get_model("vll", "VllTombstone").objects.values_list("leases", "vll")
    }
    return lines | changes | left


class Migration(migrations.Migration):
    dependencies = [("allocation", "0002_router_cores"), ("vll", "0007_list_indexes")]

    operations = [migrations.RunPython(book, migrations.RunPython.noop)]
