"""Storage of agents' observations: interfaces, routes, tunnel addresses, foreign circuits and loads.

Except for loads, only differences are written, because each write may create a new version of the topology.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_interface
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from msgspec import to_builtins
from msgspec.structs import asdict

from portal.core.clock import to_time
from portal.core.db.compiled_query import CompiledQuery
from portal.core.db.postgres_pipeline import pipelined
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
    TunnelReport,
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


_COLUMNS = ("encapsulation", "local", "remote", "key", "sides")


def circuits_store(router: Router, circuits: Iterable[CircuitReport]) -> None:
    """Store the reported circuits, and delete those that are no longer reported."""
    reported = {(row.near, row.far): row for row in (_row(router, circuit) for circuit in circuits)}
    known = {(row.near, row.far): row for row in ObservedCircuit.objects.filter(router=router)}
    gone = [row.pk for place, row in known.items() if place not in reported]
    ObservedCircuit.objects.filter(pk__in=gone).delete()
    changed = []
    for place, row in reported.items():
        old = known.get(place)
        if old is not None and _columns(old) != _columns(row):
            row.pk = old.pk
            changed.append(row)
    ObservedCircuit.objects.bulk_update(changed, _COLUMNS, batch_size=500)
    new = [row for place, row in reported.items() if place not in known]
    ObservedCircuit.objects.bulk_create(new, batch_size=500)


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


def _columns(row: ObservedCircuit) -> tuple[Any, ...]:
    return tuple(getattr(row, name) for name in _COLUMNS)


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

    ``interfaces_changed``: an interface was added, removed, set up, shut or paired with Linux, or a tunnel
    endpoint changed. A change of a link's state does not count, because no path calculation depends on it.
    """

    before: ObservedRouter | None
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
        if not _is_newer(row, report, now):
            return None
        if not report.vpp.connected:
            facts = facts | {name: getattr(row, name) for name in _OF_VPP}
            facts |= {"vpp_away_since": row.vpp_away_since or now, "digests": before | digests}
    interfaces_changed = False
    if report.vpp.connected:
        if digests["interfaces"] != before.get("interfaces"):
            changed = _interfaces_store(router, report.interfaces, now)
            others = _addresses_store(router, _tunnel_addresses(report.interfaces))
            interfaces_changed = changed or others
        if digests["routes"] != before.get("routes"):
            _routes_store(router, {route.address: route.reachable for route in report.routes})
        if digests["paths"] != before.get("paths"):
            _paths_store(router, report.paths)
        if digests["circuits"] != before.get("circuits"):
            circuits_store(router, report.circuits)
    updates = (
        {} if row is None else {name: fact for name, fact in facts.items() if fact != getattr(row, name)}
    )
    if updates.keys() - _BEATS:
        ObservedRouter.objects.filter(router=router).update(**updates)
        updates = {}
    with pipelined():
        if updates:
            with connection.cursor() as cursor:
                cursor.execute(_BEAT, [now, report.sent_ms, router.pk])
        if report.vpp.connected:
            loads_store(router, report.interfaces, now)
    return Taken(before=row, interfaces_changed=interfaces_changed)


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


def _is_newer(row: ObservedRouter, report: ObservedReport, now: datetime) -> bool:
    return report.sent_ms > row.sent_ms or now - row.reported_at > _SILENT


def observed_facts(report: ObservedReport, now: datetime) -> dict[str, Any]:
    """Return the report as columns of an ObservedRouter."""
    vpp = report.vpp
    return {
        "digests": report.digests if vpp.connected else {"ends": report.digests["ends"]},
        "reported_at": now,
        "found_silent": False,
        "boot_id": UUID(report.boot_id),
        "sent_ms": report.sent_ms,
        "agent_version": report.agent_version,
        "vpp_connected": vpp.connected,
        "vpp_absent": vpp.absent,
        "vpp_hangs": vpp.hangs,
        "set_aside": [asdict(each) for each in report.set_aside],
        "vpp_away_since": None if vpp.connected else now,
        "vpp_version": vpp.version or "",
        "vpp_booted_at": vpp.booted_at,
        "vpp_workers": vpp.workers,
        "vpp_plugins": vpp.plugins,
        "simulated": bool(vpp.simulated),
        "encapsulations": report.encapsulations if vpp.connected else None,
        "policing": report.policing,
        "line_tests": report.line_tests,
        "gre_keys": report.gre_keys,
        "underlay_tables": report.underlay_tables,
        "path_watch": report.path_watch,
        "probes": report.probes,
        "adoption": report.adoption,
        "labels": report.labels,
        "freezes": report.freezes,
        "link_loss_forwarding": report.link_loss_forwarding,
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


def _tunnel_addresses(interfaces: Iterable[InterfaceReport]) -> set[tuple[str, int]]:
    """Return the host addresses of loopbacks that are up, with their tables.

    A tunnel must not end on an address of a link, because the link may go down.
    """
    hosts = {
        (host, interface.tables[host.version == 6])
        for interface in interfaces
        if interface.name.startswith(_LOOPBACK) and interface.admin_up
        for host in map(ip_interface, interface.addresses)
    }
    return {
        (str(host.ip), table)
        for host, table in hosts
        if host.network.num_addresses == 1 and not host.is_link_local
    }


def _addresses_store(router: Router, reported: set[tuple[str, int]]) -> bool:
    """Store the addresses; return whether they changed."""
    rows = {(row.address, row.table): row.pk for row in TunnelAddress.objects.filter(router=router)}
    known = rows.keys()
    TunnelAddress.objects.bulk_create(
        TunnelAddress(router=router, address=address, table=table)
        for address, table in sorted(reported - known)
    )
    if known - reported:
        TunnelAddress.objects.filter(pk__in=[rows[each] for each in known - reported]).delete()
    return reported != known


def _routes_store(router: Router, reported: dict[str, bool]) -> None:
    known = dict(ObservedRoute.objects.filter(router=router).values_list("address", "reachable"))
    ObservedRoute.objects.bulk_create(
        ObservedRoute(router=router, address=address, reachable=reported[address])
        for address in sorted(reported.keys() - known.keys())
    )
    for reachable in (True, False):
        turned = [
            a for a, is_now in reported.items() if is_now is reachable and known.get(a) is (not reachable)
        ]
        if turned:
            ObservedRoute.objects.filter(router=router, address__in=turned).update(reachable=reachable)
    if known.keys() - reported.keys():
        ObservedRoute.objects.filter(router=router, address__in=known.keys() - reported.keys()).delete()


def _paths_store(router: Router, paths: Iterable[PathReport]) -> None:
    """Replace the stored watched paths. They are few and change rarely, so they are not compared first."""
    reported = {
        (path.local, path.remote): ObservedPath(
            router=router,
            local=path.local,
            remote=path.remote,
            state=path.state,
            since=to_time(path.since_ms),
            foreign=path.foreign,
            detail=path.detail or "",
        )
        for path in paths
    }
    ObservedPath.objects.filter(router=router).delete()
    ObservedPath.objects.bulk_create(reported.values())
