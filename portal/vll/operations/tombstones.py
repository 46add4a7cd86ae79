"""Ends on routers: the routers' answers about them, and tombstones of ends that have left a router.

A tombstone says what may remain on the router. Leases are released when nothing can remain there.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from portal.core.background_work import each_row
from portal.inventory.models import Router
from portal.vll.line_allocation import TUNNEL_LEASES, leases_release, tunnel_conditions, tunnels_cool_down
from portal.vll.line_revision import LineRevision
from portal.vll.models import TombstoneTunnel, Vll, VllEnd, VllTombstone


@dataclass(frozen=True, slots=True)
class EndAnswer:
    """An agent's answer about one VLL end at one revision (docs/reference/agent-api.md).

    ``permanent``: a retry cannot help. The caller decides that from VPP's return codes. ``look``: the number
    of the agent's observation of VPP on which the answer is based; None: not reported.
    """

    vll: UUID
    side: str
    revision: int
    status: str
    reason: dict[str, Any] | None
    permanent: bool
    policed: bool = False
    look: int | None = None


def stored_answers(
    router: Router, vlls: Iterable[UUID]
) -> dict[tuple[UUID, str], tuple[str, int, Any, bool]]:
    """Return the router's last answers about the ends of these VLLs, also about ends that have left it.

    Keys: (VLL id, side). Values: (status, revision, reason, policed).
    """
    wanted = list(vlls)
    ends = VllEnd.objects.filter(port__router=router, vll__in=wanted)
    left = VllTombstone.objects.filter(router=router, vll__in=wanted)
    return {
        (vll, side): (status, revision, reason, False)
        for vll, side, status, revision, reason in left.values_list(
            "vll", "side", "status", "revision", "reason"
        )
    } | {
        (vll, side): (status, revision, reason, policed)
        for vll, side, status, revision, reason, policed in ends.values_list(
            "vll", "side", "status", "status_revision", "reason", "policed"
        )
    }


def tombstone_create(
    vll: Vll,
    *,
    side: str,
    router_id: int,
    revision: int,
    before: LineRevision | None = None,
    after: LineRevision | None = None,
    let_go_of: VllEnd | None = None,
) -> VllTombstone:
    """Record that an end left this router, with every tunnel of the line that the router may have.

    The tombstone names all tunnels that are leased for the line, because the router may also have tunnels of
    orders that were ended by force. A tunnel that only ``after`` needs is excluded: the portal sends it to
    the end's new router only. ``let_go_of``: the end, if the portal stops managing it and others manage it
    again.
    """
    tombstone: VllTombstone = VllTombstone.objects.create(
        vll=vll,
        side=side,
        router_id=router_id,
        revision=revision,
        release=let_go_of is not None,
        access_tag=let_go_of.access_tag_before if let_go_of else "",
        tunnel_tag=let_go_of.tunnel_tag_before if let_go_of else "",
    )
    owners = [vll.pk, *vll.orders.values_list("pk", flat=True)]
    was, will_be = (tunnel_conditions(each) if each else {} for each in (before, after))
    tunnels: list[TombstoneTunnel] = []
    for column, of in TUNNEL_LEASES.items():
        leases = of.objects.filter(owner__in=owners, released_at__isnull=True)
        if (new := will_be.get(column)) is not None and new != was[column]:
            leases = leases.exclude(new)
        tunnels += [TombstoneTunnel(tombstone=tombstone, **{column: lease}) for lease in leases]
    TombstoneTunnel.objects.bulk_create(tunnels)
    return tombstone


def tombstones_settle(vll: Vll, router: Router, answers: Iterable[EndAnswer], *, now: datetime) -> None:
    """Process the answers of ``router`` about ends that left it. The caller has locked the VLL.

    When the router has confirmed that nothing of an end is left, the portal releases the end's leases there.
    It also releases each tunnel of the end that no other router may still have.
    """
    by_side = {answer.side: answer for answer in answers}
    for tombstone in VllTombstone.objects.filter(vll=vll, router=router).order_by("pk"):
        answer = by_side.get(tombstone.side)
        if answer is None or answer.revision != tombstone.revision:
            continue
        if answer.status != VllEnd.Status.REMOVED:
            VllTombstone.objects.filter(pk=tombstone.pk).update(
                status=answer.status, status_at=now, reason=answer.reason
            )
            continue
        _give_back(tombstone, now=now)


def tombstones_of_retired_routers_settle(*, now: datetime) -> int:
    """Settle the tombstones of retired routers; return how many. Each has its own transaction.

    No router will ever confirm these removals. ``router_remove`` settles the tombstones of the router that it
    retires. An earlier release did not, and may have left tombstones.
    """
    left = VllTombstone.objects.filter(router__retired_at__isnull=False).order_by("pk")
    return sum(
        each_row(
            left.values_list("pk", "vll"),
            lambda row: _of_retired_router_settle(*row, now=now),
            what="settling what a line left on a retired router",
        )
    )


@transaction.atomic
def _of_retired_router_settle(pk: int, vll_id: UUID, *, now: datetime) -> int:
    Vll.objects.locked().get(pk=vll_id)
    tombstone = VllTombstone.objects.filter(pk=pk, router__retired_at__isnull=False).first()
    if tombstone is None:
        return 0
    _give_back(tombstone, now=now)
    return 1


def tombstones_abandon(router: Router, *, now: datetime) -> list[Vll]:
    """Release all leases of lines at ``router``, which leaves the network; return these lines.

    The tunnels cool down as after a confirmation, because no more tunnels to the router's addresses are
    built. The caller has locked the lines.
    """
    left = VllTombstone.objects.filter(router=router).select_related("vll").order_by("pk")
    lines = {}
    for tombstone in left:
        lines[tombstone.vll_id] = tombstone.vll
        _give_back(tombstone, now=now)
    return list(lines.values())


def _give_back(tombstone: VllTombstone, *, now: datetime) -> None:
    """Delete the tombstone, and release its leases and each tunnel that no other router may have."""
    tunnels, leases = list(tombstone.tunnels.all()), tombstone.leases
    tombstone.delete()
    leases_release(leases, now=now)
    tunnels_cool_down(tunnels, now=now)


_NOT_OBSERVED: dict[str, Any] = {
    "link_up": None,
    "link_since": None,
    "shut_down": False,
    "reachable": None,
    "observed_in_sync": None,
    "path_state": "",
    "path_since_ms": None,
    "drift": [],
    "contested": [],
    "vlan_loss": None,
}
