"""The MTU check of the lines in service, and the marks of lines that the network no longer carries.

A line is marked from a change of the network until the network carries the line again as sold.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, FilteredRelation, Q, QuerySet

from portal.core.background_work import each_row
from portal.core.network.encapsulations import Encapsulation, Family, Transport
from portal.core.network.required_mtu import VLAN_TAG, required_ip_mtu
from portal.core.network.vlan_tags import Tagging
from portal.events.announcements import announce
from portal.inventory.models import Port, Router
from portal.underlay.current_topology import path_policy, topology_when_all_report
from portal.underlay.path_mtu import PathReport, path_check
from portal.underlay.topology import Topology
from portal.vll.models import Vll, VllEnd
from portal.vll.states import TERMINAL_LIFECYCLES


def lines_off_the_path(topology: Topology) -> set[UUID]:
    """Return the ids of the lines whose largest frame does not fit the path between their routers.

    If the policy requires that lines survive one failure, the paths after any one failure count too.
    """
    policy = path_policy()
    reports: dict[tuple[int, int, int], PathReport] = {}
    found: set[UUID] = set()
    columns = ("pk", "a_router", "z_router", "encapsulation", "family", "frame", "gre_key")
    for line, a, z, encapsulation, family, frame, key in tunnelled_lines().values_list(*columns):
        if (a, z, family) not in reports:
            reports[a, z, family] = path_check(
                topology, a, z, family=Family(family), any_single_failure=policy.survives_one_failure
            )
        transport = Transport.of(Encapsulation(encapsulation), family)
        required = required_ip_mtu(frame, transport, policy.mtu, gre_key=key is not None)
        if required is not None and reports[a, z, family].refusal(required) is not None:
            found.add(line)
    return found


def path_assumed(vll: Vll, a: Router, z: Router) -> dict[str, Any]:
    """Return the links that count for the tunnel of a line, and their IP MTUs (bytes; None: unknown).

    ``required_ip_mtu`` is the size that the tunnel's largest frame needs. ``backup`` links are used only
    after a failure.
    """
    topology, policy, transport = topology_when_all_report(), path_policy(), Transport(vll.transport)
    gre_key = vll.gre_key is not None
    assert transport.family is not None  # noqa: S101 - a tunnel has a family
    report = path_check(
        topology, a.pk, z.pk, family=transport.family, any_single_failure=policy.survives_one_failure
    )
    return {
        "required_ip_mtu": required_ip_mtu(vll.frame, transport, policy.mtu, gre_key=gre_key),
        "ip_mtu": report.path_mtu,
        "links": [
            {"link": link.name, "ip_mtu": topology.ip_mtu(link), "backup": link in report.used.backup}
            for link in report.links
        ],
    }


def lines_too_large_for(port: Port) -> set[UUID]:
    """Return the lines whose largest frame, including its tags, is larger than the port accepts."""
    return _too_large(live_ends().filter(port=port), max_frame=port.max_frame)


def _too_large(ends: QuerySet[VllEnd], *, max_frame: int | None = None) -> set[UUID]:
    """Return the lines of ``ends`` whose largest frame, with its tags, is larger than the port accepts.

    ``max_frame`` (bytes) replaces the stored limits of the ports.
    """
    rows = ends.values_list("vll", "vll__frame", "tagging", "port__max_frame")
    return {
        line
        for line, frame, tagging, stored in rows
        if frame + VLAN_TAG * Tagging(tagging).selecting_tags > (max_frame or stored)
    }


def tunnelled_lines() -> QuerySet[Vll]:
    """Return the lines that routers must have and that have a tunnel, with ``a_router`` and ``z_router``."""
    lines = Vll.objects.filter(wanted_present=True, family__isnull=False)
    with_routers: QuerySet[Vll] = lines.exclude(lifecycle__in=TERMINAL_LIFECYCLES).annotate(
        a_end=FilteredRelation("ends", condition=Q(ends__side="a")),
        z_end=FilteredRelation("ends", condition=Q(ends__side="z")),
        a_router=F("a_end__port__router"),
        z_router=F("z_end__port__router"),
    )
    return with_routers


def live_ends() -> QuerySet[VllEnd]:
    """Return the ends that routers must have, of all lines."""
    return VllEnd.objects.filter(vll__wanted_present=True).exclude(vll__lifecycle__in=TERMINAL_LIFECYCLES)


@transaction.atomic
def carried_again(*, off: Collection[UUID], now: datetime) -> None:
    """Unmark the marked lines that are carried again. The caller has locked the marked lines.

    ``off``: the lines that do not fit their paths.
    """
    for line in _carried(off):
        _carried_again(line, now)


def lines_not_carried_keep(*, now: datetime) -> None:
    """Check the marked lines again: links, routers and the lines themselves may have changed since.

    Each line has its own transaction.
    """
    if Vll.objects.filter(not_carried_since__isnull=False).exists():
        lines = _carried(lines_off_the_path(topology_when_all_report()))
        each_row(lines, lambda line: _carried_again(line, now), what="a line that is carried again")


def _carried(off: Collection[UUID]) -> list[UUID]:
    """Return the ids of the marked lines that fit their paths and their ports again."""
    noted = Vll.objects.filter(not_carried_since__isnull=False).exclude(pk__in=off)
    still = _too_large(live_ends().filter(vll__in=noted))
    return list(noted.exclude(pk__in=still).order_by("pk").values_list("pk", flat=True))


@transaction.atomic
def _carried_again(vll_id: UUID, now: datetime) -> None:
    """Unmark the line. If the line is not being removed, announce this."""
    noted = Vll.objects.locked().filter(pk=vll_id, not_carried_since__isnull=False)
    line = noted.first()
    if line is None:
        return
    Vll.objects.filter(pk=line.pk).update(not_carried_since=None)
    if line.wanted_present and line.lifecycle not in TERMINAL_LIFECYCLES:
        announce("vll.carried", now=now, customer_id=line.customer_id, vll_id=line.pk)
