"""A database as it was before mails and webhooks: its tables, with a line in service.

`python -m tests.integration.older_release` makes it of an empty one.
A process of its own: the tables of the tests themselves stay those of today.
"""

import os
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import django
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.transaction import atomic

# Where apps stood; those that are not named had the tables of today, and those with None were not there.
STOOD_AT = {
    "audit": "0011_oversubscription",
    "events": "0001_initial",
    "netbox_sync": None,
    "notifications": None,
    "telemetry": "0010_judged_silences",
    "vll": "0015_ask_anew",
}
NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
KEEPER = UUID("0b8b6e0e-7d8c-4a43-9d3e-2f8f6c1a5d77")


def main() -> None:
    executor = MigrationExecutor(connection)
    wanted = [(app, STOOD_AT.get(app, name)) for app, name in executor.loader.graph.leaf_nodes()]
    targets = [(app, name) for app, name in wanted if name]
    executor.migrate(targets)
    with atomic():
        line_in_service(MigrationExecutor(connection).loader.project_state(targets).apps.get_model)


def line_in_service(model: Any) -> None:
    """One customer, two routers, a line between them and the order that made it, which was announced."""
    dairy = model("accounts", "Customer").objects.create(name="Alpine Dairy", created_at=NOW)
    line = model("vll", "Vll").objects.create(
        customer=dairy,
        description="ZRH-AMS",
        created_at=NOW,
        lifecycle="active",
        oper_status="op-up",
        svc_mtu=1500,
        cir_bps=100_000_000,
        requested_transport="vxlan4",
        encapsulation="vxlan",
        family=4,
        vni=4711,
        frame=1518,
    )
    site = model("inventory", "Site").objects.create(name="Zürich")
    aside = {
        "boot_id": str(KEEPER),
        "seq": 7,
        "from_ms": 1000,
        "to_ms": 11_000,
        "ends": [{"vll": str(line.pk), "side": "a", "in_bytes": -1}],
    }
    for number, (name, side) in enumerate([("rhino", "a"), ("hippo", "z")], start=1):
        router = model("inventory", "Router").objects.create(
            name=name, site=site, loopback4=f"10.255.0.{number}", cpu="Ryzen 5950X", cores=4
        )
        if side == "a":
            model("telemetry", "QuarantinedSample").objects.create(
                router=router, received_at=NOW, reason="negative", sample=aside
            )
        port = model("inventory", "Port").objects.create(
            router=router, interface="host-cust1", customer=dairy, speed_bps=10**10, bookable_bps=10**10
        )
        model("vll", "VllEnd").objects.create(vll=line, side=side, port=port, tagging="dot1q", outer_vlan=100)
    order = model("vll", "Order").objects.create(
        vll=line,
        customer=dairy,
        action="add",
        state="completed",
        revision=1,
        ordered_by="alice",
        ordered_at=NOW,
        state_at=NOW,
    )
    # Both ends came from other routers, with one change, and these have not confirmed yet.
    model("allocation", "VniLease").objects.create(vni=4711, holder=line.pk, leased_at=NOW)
    for name, side in (("zebra", "a"), ("panda", "z")):
        router = model("inventory", "Router").objects.create(name=name, site=site, cpu="Ryzen 5950X", cores=4)
        model("vll", "VllTombstone").objects.create(
            vll=line, side=side, router=router, revision=1, leases=KEEPER
        )
        model("allocation", "CoreBooking").objects.create(router=router, holder=KEEPER, side=side, load=1)
    model("events", "Event").objects.create(
        at=NOW, kind="order.completed", customer_id=dairy.pk, vll_id=line.pk, order_id=order.pk
    )


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()
    main()
