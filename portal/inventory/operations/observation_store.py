"""Storing what agents observe. But for loads only differences are written: each may make a new topology."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_interface
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from msgspec.structs import asdict

from portal.core.compiled_query import CompiledQuery
from portal.core.postgres_pipeline import pipelined
from portal.core.unix_time import to_time
from portal.inventory.models import (
    ObservedInterface,
    ObservedPath,
    ObservedRoute,
    ObservedRouter,
    Router,
    TunnelAddress,
)
from portal.inventory.operations.interface_loads import loads_store
from portal.inventory.operations.observed_circuit_store import circuits_store
from portal.inventory.reported_observation import InterfaceReport, ObservedReport, PathReport

# Three report intervals: after that even a report with an earlier time is news (a clock was set back).
_SILENT = timedelta(seconds=30)
_LOOPBACK = "loop"
# What a VPP can do is what it could do, while it is away.
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
_SEEN = ("admin_up", "link_up", "link_since", "speed_bps", "ip_mtu", "linux_cp", "parent", "frames")
_OF_LINK = {"admin_up", "link_up"}
_OF_BUILDING = {"admin_up", "linux_cp"}
# All that differs between two reports without news.
_BEATS = {"reported_at", "sent_ms"}
_BEAT = "UPDATE inventory_observedrouter SET reported_at = %s, sent_ms = %s WHERE router_id = %s"
_of_router = CompiledQuery[ObservedRouter](
    lambda router: ObservedRouter.objects.select_for_update().filter(router=router)
)


@dataclass(frozen=True, slots=True)
class Taken:
    """A report was stored. ``before``: what its agent had said until then, None where that is the first.

    ``interfaces_changed``: one came or went, or was set up, shut or paired with Linux, or a tunnel may end on
    another address. Not that a link came or went: what can be built does not depend on it.
    """

    before: ObservedRouter | None
    interfaces_changed: bool


@transaction.atomic(savepoint=False)
def observed_store(
    *, router: Router, report: ObservedReport, facts: dict[str, Any], now: datetime
) -> Taken | None:
    """Store a report, with its ``observed_facts``; None when a later one has been stored already.

    While the agent has no VPP to look at, what was seen last stays: a restart of VPP is no news about links.
    A part with the digest of the last is the same, and is not looked into.
    """
    told = facts["digests"]
    row = _locked(router, facts)
    before = {} if row is None else row.digests
    if row is not None:
        if not _is_news(row, report, now):
            return None
        if not report.vpp.connected:
            facts = facts | {name: getattr(row, name) for name in _OF_VPP}
            facts |= {"vpp_away_since": row.vpp_away_since or now, "digests": before | told}
    interfaces_changed = False
    if report.vpp.connected:
        if told["interfaces"] != before.get("interfaces"):
            changed = _interfaces_store(router, report.interfaces, now)
            others = _addresses_store(router, _tunnel_addresses(report.interfaces))
            interfaces_changed = changed or others
        if told["routes"] != before.get("routes"):
            _routes_store(router, {route.address: route.reachable for route in report.routes})
        if told["paths"] != before.get("paths"):
            _paths_store(router, report.paths)
        if told["circuits"] != before.get("circuits"):
            circuits_store(router, report.circuits)
    news = {} if row is None else {name: fact for name, fact in facts.items() if fact != getattr(row, name)}
    if news.keys() - _BEATS:
        ObservedRouter.objects.filter(router=router).update(**news)
        news = {}
    with pipelined():
        if news:
            with connection.cursor() as cursor:
                cursor.execute(_BEAT, [now, report.sent_ms, router.pk])
        if report.vpp.connected:
            loads_store(router, report.interfaces, now)
    return Taken(before=row, interfaces_changed=interfaces_changed)


def _locked(router: Router, facts: dict[str, Any]) -> ObservedRouter | None:
    """The router's row as it was, for update; None where there was none, and these facts are now."""
    with pipelined():  # with the statement that begins the transaction
        rows = _of_router(router.pk)
    for row in rows:
        return row
    row, created = ObservedRouter.objects.select_for_update().get_or_create(router=router, defaults=facts)
    return None if created else row


def is_unchanged(*, last: ObservedRouter, report: ObservedReport, facts: dict[str, Any]) -> bool:
    """Whether a later report says what the last one said, with a VPP to look at, and only its time is new."""
    if not report.vpp.connected or report.sent_ms <= last.sent_ms:
        return False
    return all(facts[name] == getattr(last, name) for name in facts.keys() - _BEATS)


def _is_news(row: ObservedRouter, report: ObservedReport, now: datetime) -> bool:
    return report.sent_ms > row.sent_ms or now - row.reported_at > _SILENT


def observed_facts(report: ObservedReport, now: datetime) -> dict[str, Any]:
    """The report as columns of an ObservedRouter."""
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
        "generation_held": report.generation.held,
        "generation_applied": report.generation.applied,
    }


def _interfaces_store(router: Router, interfaces: Iterable[InterfaceReport], now: datetime) -> bool:
    """Whether some are others than before (``Taken``)."""
    others = False
    gone = {row.name: row for row in ObservedInterface.objects.filter(router=router)}
    new, changed = [], []
    for seen in interfaces:
        row = gone.pop(seen.name, None)
        if row is None:
            new.append(ObservedInterface(router=router, name=seen.name, **seen.columns))
            continue
        news = {name: value for name, value in seen.columns.items() if getattr(row, name) != value}
        if news.keys() & _OF_LINK:
            row.link_since = now
        for name, value in news.items():
            setattr(row, name, value)
        if news:
            others |= bool(news.keys() & _OF_BUILDING)
            changed.append(row)
    ObservedInterface.objects.bulk_create(new)
    if changed:
        ObservedInterface.objects.bulk_update(changed, _SEEN)
    if gone:
        ObservedInterface.objects.filter(pk__in=[row.pk for row in gone.values()]).delete()
    return bool(others or new or gone)


def _tunnel_addresses(interfaces: Iterable[InterfaceReport]) -> set[tuple[str, int]]:
    """Host addresses of loopbacks that are up, with their tables: a tunnel must not end on a link, which may
    go down."""
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


def _addresses_store(router: Router, seen: set[tuple[str, int]]) -> bool:
    """Whether they are others than before."""
    rows = {(row.address, row.table): row.pk for row in TunnelAddress.objects.filter(router=router)}
    known = rows.keys()
    TunnelAddress.objects.bulk_create(
        TunnelAddress(router=router, address=address, table=table) for address, table in sorted(seen - known)
    )
    if known - seen:
        TunnelAddress.objects.filter(pk__in=[rows[each] for each in known - seen]).delete()
    return seen != known


def _routes_store(router: Router, seen: dict[str, bool]) -> None:
    known = dict(ObservedRoute.objects.filter(router=router).values_list("address", "reachable"))
    ObservedRoute.objects.bulk_create(
        ObservedRoute(router=router, address=address, reachable=seen[address])
        for address in sorted(seen.keys() - known.keys())
    )
    for reachable in (True, False):
        turned = [a for a, is_now in seen.items() if is_now is reachable and known.get(a) is (not reachable)]
        if turned:
            ObservedRoute.objects.filter(router=router, address__in=turned).update(reachable=reachable)
    if known.keys() - seen.keys():
        ObservedRoute.objects.filter(router=router, address__in=known.keys() - seen.keys()).delete()


def _paths_store(router: Router, paths: Iterable[PathReport]) -> None:
    """Paths are few, and turn rarely: those that are told are written anew."""
    seen = {
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
    ObservedPath.objects.bulk_create(seen.values())
