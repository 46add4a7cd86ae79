"""Storage of agents' observations: interfaces, routes, tunnel addresses, foreign circuits and loads.

Except for loads, only differences are written, because each write may create a new version of the topology.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_interface
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from msgspec import to_builtins
from msgspec.structs import asdict

from portal.core.clock import to_time
from portal.core.db.sessions import pipelined
from portal.core.db.statements import CompiledQuery
from portal.inventory.models import (
    ObservedCircuit,
    ObservedInterface,
    ObservedPath,
    ObservedRoute,
    ObservedRouter,
    Router,
    TunnelAddress,
)
from portal.inventory.reported_observation import (
    CircuitReport,
    InterfaceReport,
    ObservedReport,
    PathReport,
    RouteReport,
    TunnelReport,
    VppReport,
)

# Takes the parameters of ``loads_of``; ``condition`` restricts the write.
LOADS_STORE = """
INSERT INTO inventory_observedload (link_id, side, at, rx_bps, tx_bps, speed_bps)
SELECT link.id, link.side, %(now)s, seen.rx_bps, seen.tx_bps, seen.speed_bps
FROM unnest(%(names)s::text[], %(rx)s::bigint[], %(tx)s::bigint[], %(speeds)s::bigint[])
     AS seen (name, rx_bps, tx_bps, speed_bps)
JOIN (SELECT id, 'a' AS side, a_interface AS name FROM inventory_backbonelink WHERE a_router_id = %(router)s
      UNION ALL
      SELECT id, 'z', z_interface FROM inventory_backbonelink WHERE z_router_id = %(router)s) AS link
  USING (name)
WHERE {condition}
ORDER BY link.id, link.side
ON CONFLICT (link_id, side) DO UPDATE
SET at = EXCLUDED.at, rx_bps = EXCLUDED.rx_bps, tx_bps = EXCLUDED.tx_bps, speed_bps = EXCLUDED.speed_bps
"""


def loads_store(router: Router, interfaces: Iterable[InterfaceReport], now: datetime) -> None:
    """Store the loads of interfaces that are part of a link.

    For an interface without a load, the stored load and its time stay.
    """
    params = loads_of(router, interfaces, now)
    if params["names"]:
        with connection.cursor() as cursor:
            cursor.execute(LOADS_STORE.format(condition="true"), params)


def loads_of(router: Router, interfaces: Iterable[InterfaceReport], now: datetime) -> dict[str, Any]:
    """Return the parameters of LOADS_STORE."""
    loads = {interface.name: interface.load for interface in interfaces if interface.load is not None}
    return {
        "router": router.pk,
        "now": now,
        "names": list(loads),
        "rx": [load.rx_bps for load in loads.values()],
        "tx": [load.tx_bps for load in loads.values()],
        "speeds": [load.speed_bps for load in loads.values()],
    }


def _rows_store(
    model: Any, router: Router, rows: Iterable[Any], *, key: Sequence[str], columns: Sequence[str] = ()
) -> bool:
    """Store the reported rows of the router, and delete those that are no longer reported.

    ``key``: the columns that identify a row. Return whether anything changed.
    """
    known = {_values(row, key): row for row in model.objects.filter(router=router)}
    new, changed = [], []
    for place, row in {_values(row, key): row for row in rows}.items():
        old = known.pop(place, None)
        if old is None:
            new.append(row)
        elif _values(old, columns) != _values(row, columns):
            row.pk = old.pk
            changed.append(row)
    model.objects.filter(pk__in=[row.pk for row in known.values()]).delete()
    if changed:
        model.objects.bulk_update(changed, columns, batch_size=500)
    model.objects.bulk_create(new, batch_size=500)
    return bool(known or new or changed)


def _values(row: Any, columns: Sequence[str]) -> tuple[Any, ...]:
    return tuple(getattr(row, name) for name in columns)


def circuits_store(router: Router, circuits: Iterable[CircuitReport]) -> None:
    """Store the reported circuits, and delete those that are no longer reported."""
    rows = [_row(router, circuit) for circuit in circuits]
    columns = ("encapsulation", "local", "remote", "key", "sides")
    _rows_store(ObservedCircuit, router, rows, key=("near", "far"), columns=columns)


def _row(router: Router, circuit: CircuitReport) -> ObservedCircuit:
    row = ObservedCircuit(
        router=router,
        near=circuit.near.interface,
        far="" if circuit.far is None else circuit.far.interface,
        sides=to_builtins(circuit, enc_hook=str),
    )
    tunnel = _tunnel(circuit)
    if tunnel is not None:
        row.encapsulation, row.local, row.remote = tunnel.encapsulation, tunnel.local, tunnel.remote
        row.key = tunnel.vni or tunnel.gre_key or 0
    return row


def _tunnel(circuit: CircuitReport) -> TunnelReport | None:
    """Return the only tunnel of a circuit; None for a circuit within the router or between two tunnels."""
    tunnels = [side.tunnel for side in (circuit.near, circuit.far) if side is not None and side.tunnel]
    return tunnels[0] if len(tunnels) == 1 else None


# Three report intervals. After so long without a report, the portal also accepts a report with an earlier
# time, because the router's clock may have been set back.
_SILENT = timedelta(seconds=30)
_LOOPBACK = "loop"
# While VPP is away, its last known capabilities stay.
_OF_VPP = (
    "encapsulations",
    "policing",
    "line_tests",
    "gre_keys",
    "path_watch",
    "probes",
    "vpp_workers",
    "vpp_plugins",
)
_OBSERVED = ("admin_up", "link_up", "link_since", "speed_bps", "ip_mtu", "linux_cp", "parent", "frames")
_OF_LINK = {"admin_up", "link_up"}
_OF_BUILDING = {"admin_up", "linux_cp"}
# The only columns that differ between two reports without a change.
_BEATS = {"reported_at", "sent_ms"}
_BEAT = "UPDATE inventory_observedrouter SET reported_at = %s, sent_ms = %s WHERE router_id = %s"
_of_router = CompiledQuery[ObservedRouter](
    lambda router: ObservedRouter.objects.select_for_update().filter(router=router)
)


@dataclass(frozen=True, slots=True)
class Taken:
    """The result of storing a report. ``before``: the row of the previous report, None for the first one.

    ``changed``: the columns of ObservedRouter that changed; all columns for the first report.
    ``interfaces_changed``: an interface was added, removed, set up, shut or paired with Linux, or a tunnel
    endpoint changed. A change of a link's state does not count, because no path calculation depends on it.
    """

    before: ObservedRouter | None
    changed: frozenset[str]
    interfaces_changed: bool


@transaction.atomic(savepoint=False)
def observed_store(
    *, router: Router, report: ObservedReport, facts: dict[str, Any], now: datetime
) -> Taken | None:
    """Store a report with its ``observed_facts``; return None if a later report has been stored already.

    While the agent has no VPP, the last observations stay, because a restart of VPP says nothing about links.
    A part with the same digest as in the last report is unchanged and is not processed.
    """
    digests = facts["digests"]
    row = _locked(router, facts)
    before = {} if row is None else row.digests
    if row is not None:
        if report.sent_ms <= row.sent_ms and now - row.reported_at <= _SILENT:
            return None
        if not report.vpp.connected:
            facts = facts | {name: getattr(row, name) for name in _OF_VPP}
            facts |= {"vpp_away_since": row.vpp_away_since or now, "digests": before | digests}
    interfaces_changed = False
    if report.vpp.connected:
        if digests["interfaces"] != before.get("interfaces"):
            interfaces_changed = _interfaces_store(router, report.interfaces, now)
            interfaces_changed |= _addresses_store(router, report.interfaces)
        if digests["routes"] != before.get("routes"):
            _routes_store(router, report.routes)
        if digests["paths"] != before.get("paths"):
            _paths_store(router, report.paths)
        if digests["circuits"] != before.get("circuits"):
            circuits_store(router, report.circuits)
    updates = (
        {} if row is None else {name: fact for name, fact in facts.items() if fact != getattr(row, name)}
    )
    changed = frozenset(facts if row is None else updates)
    if updates.keys() - _BEATS:
        ObservedRouter.objects.filter(router=router).update(**updates)
        updates = {}
    with pipelined():
        if updates:
            with connection.cursor() as cursor:
                cursor.execute(_BEAT, [now, report.sent_ms, router.pk])
        if report.vpp.connected:
            loads_store(router, report.interfaces, now)
    return Taken(before=row, changed=changed, interfaces_changed=interfaces_changed)


def _locked(router: Router, facts: dict[str, Any]) -> ObservedRouter | None:
    """Return the router's row, locked for update. If there is none, insert these facts and return None."""
    with pipelined():  # together with the statement that begins the transaction
        rows = _of_router(router.pk)
    for row in rows:
        return row
    row, created = ObservedRouter.objects.select_for_update().get_or_create(router=router, defaults=facts)
    return None if created else row


def is_unchanged(*, last: ObservedRouter, report: ObservedReport, facts: dict[str, Any]) -> bool:
    """Return whether ``report`` is later than ``last``, has a VPP, and is otherwise equal to ``last``."""
    if not report.vpp.connected or report.sent_ms <= last.sent_ms:
        return False
    return all(facts[name] == getattr(last, name) for name in facts.keys() - _BEATS)


# The columns that have the name of a member of the report, or of its part ``vpp``.
_COLUMNS = {each.name for each in ObservedRouter._meta.fields}
_MEMBERS = _COLUMNS & set(ObservedReport.__struct_fields__)
_VPP_MEMBERS = {name for name in VppReport.__struct_fields__ if f"vpp_{name}" in _COLUMNS}


def observed_facts(report: ObservedReport, now: datetime) -> dict[str, Any]:
    """Return the report as columns of an ObservedRouter."""
    vpp = report.vpp
    facts = {name: getattr(report, name) for name in _MEMBERS}
    facts |= {f"vpp_{name}": getattr(vpp, name) for name in _VPP_MEMBERS}
    return facts | {
        "digests": report.digests if vpp.connected else {"ends": report.digests["ends"]},
        "reported_at": now,
        "found_silent": False,
        "boot_id": UUID(report.boot_id),
        "set_aside": [asdict(each) for each in report.set_aside],
        "vpp_away_since": None if vpp.connected else now,
        "vpp_version": vpp.version or "",
        "vpp_booted_at": vpp.booted_at,
        "simulated": bool(vpp.simulated),
        "encapsulations": report.encapsulations if vpp.connected else None,
        "freeze": None if report.freeze is None else asdict(report.freeze),
        "generation_stored": report.generation.stored,
        "generation_applied": report.generation.applied,
    }


def _interfaces_store(router: Router, interfaces: Iterable[InterfaceReport], now: datetime) -> bool:
    """Store the interfaces; return whether they changed in the sense of ``Taken``."""
    others = False
    gone = {row.name: row for row in ObservedInterface.objects.filter(router=router)}
    new, changed = [], []
    for reported in interfaces:
        row = gone.pop(reported.name, None)
        if row is None:
            new.append(ObservedInterface(router=router, name=reported.name, **reported.columns))
            continue
        updates = {name: value for name, value in reported.columns.items() if getattr(row, name) != value}
        if updates.keys() & _OF_LINK:
            row.link_since = now
        for name, value in updates.items():
            setattr(row, name, value)
        if updates:
            others |= bool(updates.keys() & _OF_BUILDING)
            changed.append(row)
    ObservedInterface.objects.bulk_create(new)
    if changed:
        ObservedInterface.objects.bulk_update(changed, _OBSERVED)
    if gone:
        ObservedInterface.objects.filter(pk__in=[row.pk for row in gone.values()]).delete()
    return bool(others or new or gone)


def _addresses_store(router: Router, interfaces: Iterable[InterfaceReport]) -> bool:
    """Store the host addresses of loopbacks that are up, with their tables; return whether they changed.

    A tunnel must not end on an address of a link, because the link may go down.
    """
    hosts = {
        (host, interface.tables[host.version == 6])
        for interface in interfaces
        if interface.name.startswith(_LOOPBACK) and interface.admin_up
        for host in map(ip_interface, interface.addresses)
    }
    rows = [
        TunnelAddress(router=router, address=str(host.ip), table=table)
        for host, table in hosts
        if host.network.num_addresses == 1 and not host.is_link_local
    ]
    return _rows_store(TunnelAddress, router, rows, key=("address", "table"))


def _routes_store(router: Router, routes: Iterable[RouteReport]) -> None:
    rows = (ObservedRoute(router=router, address=each.address, reachable=each.reachable) for each in routes)
    _rows_store(ObservedRoute, router, rows, key=("address",), columns=("reachable",))


def _paths_store(router: Router, paths: Iterable[PathReport]) -> None:
    rows = (
        ObservedPath(
            router=router,
            local=path.local,
            remote=path.remote,
            state=path.state,
            since=to_time(path.since_ms),
            foreign=path.foreign,
            detail=path.detail or "",
        )
        for path in paths
    )
    columns = ("state", "since", "foreign", "detail")
    _rows_store(ObservedPath, router, rows, key=("local", "remote"), columns=columns)
