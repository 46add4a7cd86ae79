"""Forwarding link losses: what is known of both ends, turned by the table of portal.vll.link_loss, and told
to the router of the end that it is about. Looks only at rows, and may run twice."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from portal.core.vlan_tags import Tagging
from portal.events.outbox import announce, send_task
from portal.inventory.models import Port, RouterSilence
from portal.vll.link_loss import EndLink, Timing, held_next, other, times_next
from portal.vll.models import ForwardedLinkLoss, RouterConvergence, Vll, VllEnd
from portal.vll.operations.oper_status import FRESH
from portal.vll.states import IN_SERVICE, AdminStatus, Handover, Lifecycle
from portal.vll.task_names import CONVERGE_ROUTER

FORWARDED, FORWARDED_NO_LONGER = "vll.link_loss_forwarded", "vll.link_loss_over"
# A message to a router may be lost, or come while an earlier one is being answered.
ASKED_AGAIN_AFTER = timedelta(seconds=15)


def timing() -> Timing:
    return Timing(
        down=timedelta(seconds=settings.LONGLINE_LINK_LOSS_DOWN_S),
        up=timedelta(seconds=settings.LONGLINE_LINK_LOSS_UP_S),
    )


def forwards_link_loss(vll: Vll) -> bool:
    """Whether the line forwards a loss now: in service, and neither suspended, tested nor given away."""
    return (
        vll.link_loss_forwarding
        and vll.lifecycle == Lifecycle.ACTIVE
        and vll.admin_status == AdminStatus.UP
        and vll.handover == Handover.NONE
    )


def link_losses_forward(*, now: datetime) -> int:
    """Look at every line that may have to turn, or whose router does not do as it is wanted; how many turned.

    Each line is a transaction of its own.
    """
    return sum(_line_forward(vll, now) for vll in sorted(_to_look_at()))


def _to_look_at() -> set[UUID]:
    """Those with a loss at an end, those that forward one, and those that a router still keeps down."""
    loss = Q(link_up=False) | Q(port__router__dead_since__isnull=False)
    lost = VllEnd.objects.filter(loss, vll=OuterRef("pk"))
    found = Vll.objects.filter(Exists(lost), link_loss_forwarding=True, lifecycle=Lifecycle.ACTIVE)
    turned = ForwardedLinkLoss.objects.exclude(held="").values_list("vll", flat=True)
    kept = VllEnd.objects.filter(held_down=True, vll__lifecycle__in=IN_SERVICE).values_list("vll", flat=True)
    return set(found.values_list("pk", flat=True)) | set(turned) | set(kept)


@transaction.atomic
def _line_forward(pk: UUID, now: datetime) -> bool:
    vll = Vll.objects.locked().get(pk=pk)
    ends = {end.side: end for end in _ends(vll)}
    row = ForwardedLinkLoss.objects.filter(vll=vll).first()
    held, times = (row.held, row.times) if row else ("", 0)
    wanted = ""
    if forwards_link_loss(vll):
        links = {side: _link(end, kept=side == held, now=now) for side, end in ends.items()}
        wanted = held_next(held, links, times=times, timing=timing(), now=now)
    if wanted == held:
        _ask_again(row, ends, now)
        return False
    if row is None:
        row = ForwardedLinkLoss(vll=vll, turned_at=now)
    if wanted:
        row.times = times_next(times, turned_at=row.turned_at, now=now)
    row.held, row.turned_at, row.asked_at = wanted, now, now
    row.save()
    side = wanted or held
    _announce(vll, ends, side, FORWARDED if wanted else FORWARDED_NO_LONGER, now)
    _ask(ends[side].port.router_id, now)
    return True


def _ends(vll: Vll) -> QuerySet[VllEnd]:
    return vll.ends.select_related("port__router__observed").order_by("side")


def _link(end: VllEnd, *, kept: bool, now: datetime) -> EndLink:
    router, seen = end.port.router, getattr(end.port.router, "observed", None)
    heard = seen is not None and now - seen.reported_at <= FRESH
    silence = None if heard else RouterSilence.objects.filter(router=router, until__isnull=True).first()
    can = (
        seen is not None
        and seen.link_loss_forwarding
        and end.port.kind == Port.Kind.UNI
        and end.tagging == Tagging.UNTAGGED
    )
    return EndLink(
        link_up=end.link_up if heard and not kept and not end.held_down else None,
        since=end.link_since,
        router_dead=router.dead_since is not None,
        silent_since=silence.since if silence is not None else None,
        may_be_held=can and router.held_since is None and router.frozen_since is None,
    )


def _ask_again(row: ForwardedLinkLoss | None, ends: dict[str, VllEnd], now: datetime) -> None:
    """Once more, where a router does otherwise than it is wanted and says nothing of a conflict."""
    if row is None or now - row.asked_at < ASKED_AGAIN_AFTER:
        return
    otherwise = [end for side, end in ends.items() if end.held_down != (side == row.held)]
    unsaid = [end.port.router_id for end in otherwise if end.status == VllEnd.Status.VERIFIED]
    if unsaid:
        ForwardedLinkLoss.objects.filter(pk=row.pk).update(asked_at=now)
    for router_id in unsaid:
        _ask(router_id, now)


def _ask(router_id: int, now: datetime) -> None:
    RouterConvergence.objects.filter(router=router_id).update(ask_anew=True)
    send_task(CONVERGE_ROUTER, router_id, now=now)


def _announce(vll: Vll, ends: dict[str, VllEnd], side: str, kind: str, now: datetime) -> None:
    far = ends[other(side)]
    data: dict[str, Any] = {
        "end": side,
        "port": str(ends[side].port),
        "lost_at": str(far.port),
        "router_dead": far.port.router.dead_since is not None,
    }
    announce(kind, now=now, vll_id=vll.pk, customer_id=vll.customer_id, data=data)


def is_held_down(vll: Vll, ends: Collection[VllEnd]) -> bool:
    """Whether a port of the line is down because of the far end's link, or is about to be."""
    wanted = ForwardedLinkLoss.objects.filter(vll=vll).exclude(held="").exists()
    return wanted or any(end.held_down for end in ends)
