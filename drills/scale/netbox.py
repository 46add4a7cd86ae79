"""A NetBox beside the simulated network: it is filled with the same routers, and its syncs are told of."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address
from itertools import islice
from typing import Any

import psycopg
import pynetbox

_AT_ONCE = 100
# As devstack.large_network counts loopbacks.
_FIRST_LOOPBACK = IPv4Address("10.255.0.0")
# In this order they can be deleted.
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
    """NETBOX_URL's, where the environment names one, has the network; NETBOX_TOKEN is a superuser's.

    Raises SystemExit where it holds anything, for all that it holds is deleted in the end.
    """
    url = os.environ.get("NETBOX_URL")
    if not url:
        yield
        return
    api = pynetbox.api(url, token=os.environ.get("NETBOX_TOKEN"))
    api.http_session.trust_env = False
    if there := [kind for kind in _KINDS if _endpoint(api, kind).count()]:
        raise SystemExit(f"{url} holds {', '.join(there)}: take an empty one, for it will be emptied")
    try:
        _Filler(api).fill([f"router-{number}" for number in range(1, routers + 1)], customers)
        yield
    finally:
        for kind in _KINDS:
            _empty(_endpoint(api, kind))


def figures(database_url: str) -> Iterator[str]:
    """What the portal has noted of its syncs; nothing where it made none."""
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
    while rows := [*islice(endpoint.all(limit=_AT_ONCE), _AT_ONCE)]:
        endpoint.delete(rows)


class _Filler:
    def __init__(self, api: Any) -> None:
        self._api = api
        # Of all that was made, by a name of ours.
        self._ids: dict[str, int] = {}

    def fill(self, routers: list[str], customers: int) -> None:
        """A ring of routers, each with a port of the first customer. Raises pynetbox.RequestError."""
        self._make("extras.tags", {"uni": {"name": "UNI", "slug": "longline-uni"}})
        whose = {
            "name": "longline_customer",
            "type": "object",
            "object_types": ["dcim.interface"],
            "related_object_type": "tenancy.tenant",
        }
        self._make("extras.custom_fields", {"whose": whose})
        tenants = [f"customer-{number}" for number in range(1, customers + 1)]
        self._make("tenancy.tenants", {name: {"name": name, "slug": name} for name in tenants})
        self._make("dcim.sites", {"site": {"name": "site", "slug": "site", "status": "active"}})
        self._make("dcim.manufacturers", {"maker": {"name": "maker", "slug": "maker"}})
        model = {"model": "model", "slug": "model", "manufacturer": self._ids["maker"]}
        self._make("dcim.device_types", {"model": model})
        self._make("dcim.device_roles", {"role": {"name": "Router", "slug": "router", "color": "9e9e9e"}})
        device = {
            "status": "active",
            "site": self._ids["site"],
            "device_type": self._ids["model"],
            "role": self._ids["role"],
        }
        self._make("dcim.devices", {name: {"name": name, **device} for name in routers})
        self._make("dcim.interfaces", dict(self._interfaces(routers)))
        self._make("ipam.ip_addresses", dict(self._loopbacks(routers)))
        self._make("dcim.cables", dict(self._cables(routers)))

    def _interfaces(self, routers: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        physical = {"type": "100gbase-x-qsfp28", "mtu": 9000}
        customers_port = {
            "tags": [self._ids["uni"]],
            "custom_fields": {"longline_customer": self._ids["customer-1"]},
        }
        kinds: dict[str, dict[str, Any]] = {
            "loop0": {"type": "virtual"},
            "bb0": physical,
            "bb1": physical,
            "eth0": physical | customers_port,
        }
        for router in routers:
            for name, values in kinds.items():
                yield f"{router} {name}", {"device": self._ids[router], "name": name, **values}

    def _loopbacks(self, routers: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        for number, router in enumerate(routers, start=1):
            values = {
                "address": f"{_FIRST_LOOPBACK + number}/32",
                "assigned_object_type": "dcim.interface",
                "assigned_object_id": self._ids[f"{router} loop0"],
            }
            yield f"address of {router}", values

    def _cables(self, routers: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        for router, following in zip(routers, [*routers[1:], routers[0]], strict=True):
            values = {
                "status": "connected",
                "a_terminations": self._end(f"{router} bb0"),
                "b_terminations": self._end(f"{following} bb1"),
            }
            yield f"cable from {router}", values

    def _end(self, interface: str) -> list[dict[str, Any]]:
        return [{"object_type": "dcim.interface", "object_id": self._ids[interface]}]

    def _make(self, kind: str, rows: dict[str, dict[str, Any]]) -> None:
        names = list(rows)
        for at in range(0, len(names), _AT_ONCE):
            some = names[at : at + _AT_ONCE]
            made = _endpoint(self._api, kind).create([rows[name] for name in some])
            self._ids |= {name: row.id for name, row in zip(some, made, strict=True)}
