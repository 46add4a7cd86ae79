"""Storing what agents observe. But for loads only differences are written: each may make a new topology."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from ipaddress import ip_interface
from typing import Any

from django.db import connection, transaction

from portal.core.compiled_query import CompiledQuery
from portal.core.json_digest import json_digest
from portal.core.postgres_pipeline import pipelined
from portal.inventory.models import (
    ObservedInterface,
    ObservedRoute,
    ObservedRouter,
    Router,
    TunnelAddress,
)
from portal.inventory.observation_report import InterfaceReport, ObservedReport
from portal.inventory.operations.interface_loads import loads_store

# Three report intervals: after that even a report with an earlier time is news (a clock was set back).
_SILENT = timedelta(seconds=30)
_LOOPBACK = "loop"
# What a VPP can do is what it could do, while it is away.
_OF_VPP = ("encapsulations", "policing", "vpp_workers", "vpp_plugins")
_SEEN = ("admin_up", "link_up", "ip_mtu", "linux_cp")
_OF_BUILDING = ("admin_up", "linux_cp")
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
    *, router: Router, report: ObservedReport, digests: Mapping[str, str] | None = None, now: datetime
) -> Taken | None:
    """Store a report; None when a later one has been stored already.

    While the agent has no VPP to look at, what was seen last stays: a restart of VPP is no news about links.
    ``digests``: of parts of the report that others take care of. A part with the digest of the last is the
    same, and is not looked into.
    """
    facts = _facts(report, digests or {}, now)
    told = facts["digests"]
    row = _locked(router, facts)
    before = {} if row is None else row.digests
    if row is not None:
        if not _is_news(row, report, now):
            return None
        if not report.vpp_connected:
            facts |= {name: getattr(row, name) for name in _OF_VPP}
            facts["vpp_away_since"] = row.vpp_away_since or now
            facts["digests"] = before | told
    interfaces_changed = False
    if report.vpp_connected:
        if told["interfaces"] != before.get("interfaces"):
            changed = _interfaces_store(router, report.interfaces)
            others = _addresses_store(router, _tunnel_addresses(report.interfaces))
            interfaces_changed = changed or others
        if not told["routes"] or told["routes"] != before.get("routes"):
            _routes_store(router, {route.address: route.reachable for route in report.routes})
    news = {} if row is None else {name: fact for name, fact in facts.items() if fact != getattr(row, name)}
    if news.keys() - _BEATS:
        ObservedRouter.objects.filter(router=router).update(**news)
        news = {}
    with pipelined():
        if news:
            with connection.cursor() as cursor:
                cursor.execute(_BEAT, [now, report.sent_ms, router.pk])
        if report.vpp_connected:
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


def _digest_of(interfaces: Sequence[InterfaceReport]) -> str:
    """Of what is stored of them. Not of their loads, which are never the same again."""
    seen = [[each.name, *(getattr(each, field) for field in _SEEN), each.addresses] for each in interfaces]
    return json_digest(seen)


def is_unchanged(
    *, last: ObservedRouter, report: ObservedReport, digests: Mapping[str, str], now: datetime
) -> bool:
    """Whether a later report says what the last one said, with a VPP to look at, and only its time is new."""
    if not report.vpp_connected or report.sent_ms <= last.sent_ms:
        return False
    facts = _facts(report, digests, now)
    return all(facts[name] == getattr(last, name) for name in facts.keys() - _BEATS)


def _is_news(row: ObservedRouter, report: ObservedReport, now: datetime) -> bool:
    return report.sent_ms > row.sent_ms or now - row.reported_at > _SILENT


def _facts(report: ObservedReport, digests: Mapping[str, str], now: datetime) -> dict[str, Any]:
    told = dict(digests)
    if report.vpp_connected:
        told |= {"interfaces": _digest_of(report.interfaces), "routes": getattr(report.routes, "digest", "")}
    return {
        "digests": told,
        "reported_at": now,
        "found_silent": False,
        "boot_id": report.boot_id,
        "sent_ms": report.sent_ms,
        "agent_version": report.agent_version,
        "vpp_connected": report.vpp_connected,
        "vpp_absent": report.vpp_absent,
        "vpp_hangs": report.vpp_hangs,
        "set_aside": [asdict(each) for each in report.set_aside],
        "vpp_away_since": None if report.vpp_connected else now,
        "vpp_version": report.vpp_version or "",
        "vpp_booted_at": report.vpp_booted_at,
        "vpp_workers": report.vpp_workers,
        "vpp_plugins": None if report.vpp_plugins is None else list(report.vpp_plugins),
        "simulated": report.simulated,
        "encapsulations": list(report.encapsulations) if report.vpp_connected else None,
        "policing": report.policing,
        "generation_held": report.generation_held,
        "generation_applied": report.generation_applied,
    }


def _interfaces_store(router: Router, interfaces: Iterable[InterfaceReport]) -> bool:
    """Whether some are others than before (``Taken``)."""
    others = False
    gone = {row.name: row for row in ObservedInterface.objects.filter(router=router)}
    new, changed = [], []
    for seen in interfaces:
        row = gone.pop(seen.name, None)
        if row is None:
            new.append(
                ObservedInterface(router=router, name=seen.name, **{f: getattr(seen, f) for f in _SEEN})
            )
        elif any(getattr(row, field) != getattr(seen, field) for field in _SEEN):
            others |= any(getattr(row, field) != getattr(seen, field) for field in _OF_BUILDING)
            for field in _SEEN:
                setattr(row, field, getattr(seen, field))
            changed.append(row)
    ObservedInterface.objects.bulk_create(new)
    if changed:
        ObservedInterface.objects.bulk_update(changed, _SEEN)
    if gone:
        ObservedInterface.objects.filter(pk__in=[row.pk for row in gone.values()]).delete()
    return bool(others or new or gone)


def _tunnel_addresses(interfaces: Iterable[InterfaceReport]) -> set[str]:
    """Host addresses of loopbacks: a tunnel must not end on a link, which may go down."""
    hosts = {
        ip_interface(address)
        for interface in interfaces
        if interface.name.startswith(_LOOPBACK)
        for address in interface.addresses
    }
    return {str(host.ip) for host in hosts if host.network.num_addresses == 1 and not host.is_link_local}


def _addresses_store(router: Router, seen: set[str]) -> bool:
    """Whether they are others than before."""
    known = set(TunnelAddress.objects.filter(router=router).values_list("address", flat=True))
    TunnelAddress.objects.bulk_create(
        TunnelAddress(router=router, address=address) for address in sorted(seen - known)
    )
    if known - seen:
        TunnelAddress.objects.filter(router=router, address__in=known - seen).delete()
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
