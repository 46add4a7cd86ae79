"""A NetBox with the routers of the simulated network, and figures about the synchronization with it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address
from itertools import islice
from typing import Any

import psycopg

from devstack.netbox_writer import NetboxWriter

_PER_REQUEST = 100
# devstack.large_network numbers the loopbacks of routers from this address.
_FIRST_LOOPBACK = IPv4Address("10.255.0.0")
# Objects of these kinds can be deleted in this order.
_KINDS = (
    "vpn.l2vpns",
    "dcim.cables",
    "ipam.ip_addresses",
    "dcim.devices",
    "dcim.device_roles",
    "dcim.device_types",
    "dcim.manufacturers",
    "dcim.sites",
    "tenancy.tenants",
    "extras.custom_fields",
    "extras.tags",
)
_RUNS = """
SELECT why, extract(epoch FROM finished_at - started_at), phase, done, total, counts, error
FROM netbox_sync_netboxrun WHERE started_at IS NOT NULL ORDER BY started_at
"""
_LINES = "SELECT count(*) FILTER (WHERE error IS NULL), count(*) FROM netbox_sync_exportedvll"


@contextmanager
def netbox_of(*, routers: int, customers: int) -> Iterator[None]:
    """Fill the NetBox at NETBOX_URL with the network, and empty it at the end. Without NETBOX_URL, do
    nothing.

    NETBOX_TOKEN must belong to a superuser. Raises SystemExit if the NetBox already contains objects, because
    all its objects are deleted at the end.
    """
    url = os.environ.get("NETBOX_URL")
    if not url:
        yield
        return
    writer = NetboxWriter(url, os.environ.get("NETBOX_TOKEN", ""))
    api = writer.api
    if there := [kind for kind in _KINDS if _endpoint(api, kind).count()]:
        raise SystemExit(f"{url} contains {', '.join(there)}: take an empty one, for it will be emptied")
    try:
        _fill(writer, [f"router-{number}" for number in range(1, routers + 1)], customers)
        yield
    finally:
        for kind in _KINDS:
            _empty(_endpoint(api, kind))


def figures(database_url: str) -> Iterator[str]:
    """Yield the figures that the portal stored about its synchronizations with NetBox, if there were any."""
    with psycopg.connect(database_url) as database:
        runs = database.execute(_RUNS).fetchall()
        lines = database.execute(_LINES).fetchone()
    if not runs or lines is None:
        return
    for why, seconds, phase, done, total, counts, error in runs:
        lasted = f"not finished, {phase} {done} of {total}" if seconds is None else f"{seconds:.1f} s"
        yield f"scale netbox sync ({why}): {lasted}, {counts} {error or ''}".rstrip()
    yield f"scale netbox_lines {lines[0]} lines # {lines[1] - lines[0]} refused"


def _endpoint(api: Any, kind: str) -> Any:
    app, name = kind.split(".")
    return getattr(getattr(api, app), name)


def _empty(endpoint: Any) -> None:
    while rows := [*islice(endpoint.all(limit=_PER_REQUEST), _PER_REQUEST)]:
        endpoint.delete(rows)


def _fill(writer: NetboxWriter, routers: list[str], customers: int) -> None:
    """Create a ring of routers. Each has a port of the first customer."""
    api = writer.api
    writer.make(api.extras.tags, "uni", name="UNI", slug="longline-uni")
    writer.make(
        api.extras.custom_fields,
        "whose",
        name="longline_customer",
        type="object",
        object_types=["dcim.interface"],
        related_object_type="tenancy.tenant",
    )
    tenants = [f"customer-{number}" for number in range(1, customers + 1)]
    writer.make_all(api.tenancy.tenants, {name: {"name": name, "slug": name} for name in tenants})
    device = {
        "status": "active",
        "site": writer.make(api.dcim.sites, "site", name="site", slug="site", status="active"),
        "device_type": writer.make(
            api.dcim.device_types,
            "model",
            model="model",
            slug="model",
            manufacturer=writer.make(api.dcim.manufacturers, "maker", name="maker", slug="maker"),
        ),
        "role": writer.make(api.dcim.device_roles, "role", name="Router", slug="router", color="9e9e9e"),
    }
    writer.make_all(api.dcim.devices, {name: {"name": name, **device} for name in routers})
    physical = {"type": "100gbase-x-qsfp28"}
    of_customer = {
        "tags": [writer.id("uni")],
        "custom_fields": {"longline_customer": writer.id("customer-1")},
    }
    kinds: dict[str, dict[str, Any]] = {
        "loop0": {"type": "virtual"},
        "bb0": physical,
        "bb1": physical,
        "eth0": physical | of_customer,
    }
    writer.interfaces({f"{router}:{name}": values for router in routers for name, values in kinds.items()})
    writer.addresses(
        *((router, f"{_FIRST_LOOPBACK + number}/32") for number, router in enumerate(routers, start=1))
    )
    following = [*routers[1:], routers[0]]
    writer.cables(*((f"{a}:bb0", f"{z}:bb1") for a, z in zip(routers, following, strict=True)))
