"""Operational status: from what the agents observe of both ends, and from how fresh that is."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Min, Q, QuerySet

from portal.events.operations import announce
from portal.inventory.models import ObservedRouter, Router
from portal.vll.models import Vll, VllEnd
from portal.vll.operations.answers import EndObservation
from portal.vll.operations.transitions import sync_move
from portal.vll.states import IN_SERVICE, OperStatus

# Three report intervals and a little: an agent reports every 10 s.
FRESH = timedelta(seconds=35)
_FACTS = ("link_up", "reachable", "observed_in_sync", "policed", "drift")


@transaction.atomic
def ends_observed(
    *,
    router: Router,
    ends: Sequence[EndObservation],
    now: datetime,
    vpp_absent: bool = False,
    look: int | None = None,
) -> None:
    """Store what this router's agent says of its ends, and refresh the status of their VLLs.

    What it saw before it answered for an end is no news about that end: such a report was on its way already
    when the answer came. ``look`` is the number of its look at VPP; None: the agent is too old to say. With
    ``vpp_absent`` none of its ends forwards anything.

    All that is to be written is known before the first write: so the VLLs can be locked in one order,
    before their ends, as everybody does, and reports of two routers never wait for each other in a circle.
    """
    said = {(end.vll, end.side): end for end in ends}
    fresh = _fresh_routers(now) | {router.pk}
    changed: list[VllEnd] = []
    statuses: dict[UUID, OperStatus] = {}
    syncs: dict[UUID, bool] = {}
    for vll in _in_service_on(router):
        both = list(vll.ends.all())
        for end in both:
            if end.port.router_id != router.pk or _answered_since(end, look, now):
                continue
            if _take(end, said.get((vll.pk, end.side)), vll.revision, vpp_absent):
                changed.append(end)
        status, in_sync = oper_status_of(both, fresh), _is_in_sync(both, vll.revision)
        if status != vll.oper_status:
            statuses[vll.pk] = status
        if in_sync != vll.in_sync:
            syncs[vll.pk] = in_sync
    news = {end.vll_id for end in changed} | statuses.keys() | syncs.keys()
    _lock(news)
    # Between the reading and the lock an answer may have come: the next report tells what it left.
    news -= _overtaken(router, news, look, now)
    VllEnd.objects.bulk_update([end for end in changed if end.vll_id in news], _FACTS, batch_size=500)
    for pk in sorted(statuses.keys() & news):
        _write_status(pk, statuses[pk], now)
    for pk in syncs.keys() & news:
        sync_move(pk, syncs[pk], now=now)


@transaction.atomic
def stale_vlls_mark(*, now: datetime) -> int:
    """Turn VLLs whose routers have fallen silent to op-unknown; how many.

    Since their reports are no longer fresh, however late that is noticed: while the portal itself is away,
    nothing is known either.
    """
    silent = Q(ends__port__router__observed__isnull=True) | Q(
        ends__port__router__observed__reported_at__lt=now - FRESH
    )
    stale = (
        Vll.objects.filter(silent, lifecycle__in=IN_SERVICE)
        .exclude(oper_status=OperStatus.UNKNOWN)
        .annotate(heard=Min("ends__port__router__observed__reported_at"))
        .order_by("pk")
        .values_list("pk", "heard")
    )
    return sum(
        _write_status(pk, OperStatus.UNKNOWN, now if heard is None else heard + FRESH) for pk, heard in stale
    )


def oper_status_of(ends: Iterable[VllEnd], fresh_routers: set[int]) -> OperStatus:
    """op-up: both UNIs have link, no tunnel's route is a drop, reports are fresh (RFC 9181).

    Unknown is what nobody says, and not what is no longer there: without VPP no UNI has link.
    """
    ends = list(ends)
    if any(end.port.router_id not in fresh_routers or end.link_up is None for end in ends):
        return OperStatus.UNKNOWN
    if all(end.link_up and end.reachable is not False for end in ends):
        return OperStatus.UP
    return OperStatus.DOWN


def _is_in_sync(ends: Iterable[VllEnd], revision: int) -> bool:
    """Both ends were read back at this revision, and no agent has seen otherwise since."""
    return all(
        end.status == VllEnd.Status.VERIFIED
        and end.status_revision == revision
        and end.observed_in_sync is not False
        for end in ends
    )


def _take(end: VllEnd, said: EndObservation | None, revision: int, vpp_absent: bool) -> bool:
    """Put what was said of this revision onto the end; whether that is news."""
    facts: tuple[object, ...] = (False if vpp_absent else None, None, None, False, [])
    if said is not None and said.revision == revision:
        in_sync = said.in_sync and not said.drift
        facts = (said.link_up, said.reachable, in_sync, said.policed, said.drift)
    if facts == tuple(getattr(end, name) for name in _FACTS):
        return False
    for name, fact in zip(_FACTS, facts, strict=True):
        setattr(end, name, fact)
    return True


def _answered_since(end: VllEnd, look: int | None, now: datetime) -> bool:
    """Whether the agent answered for this end after that look.

    Not for ever: the numbers come from the agent's clock, and it may have been set back.
    """
    return (
        look is not None
        and end.status_look is not None
        and end.status_at is not None
        and look < end.status_look
        and now - end.status_at <= FRESH
    )


def _overtaken(router: Router, vlls: set[UUID], look: int | None, now: datetime) -> set[UUID]:
    if look is None or not vlls:
        return set()
    answered = VllEnd.objects.filter(
        vll__in=vlls, port__router=router, status_look__gt=look, status_at__gte=now - FRESH
    )
    return set(answered.values_list("vll", flat=True))


def _in_service_on(router: Router) -> QuerySet[Vll]:
    return (
        Vll.objects.filter(ends__port__router=router, lifecycle__in=IN_SERVICE)
        .distinct()
        .prefetch_related("ends__port")
    )


def _fresh_routers(now: datetime) -> set[int]:
    fresh = ObservedRouter.objects.filter(reported_at__gte=now - FRESH)
    return set(fresh.values_list("router_id", flat=True))


def _lock(vlls: set[UUID]) -> None:
    if vlls:
        list(Vll.objects.filter(pk__in=vlls).order_by("pk").select_for_update(no_key=True).values_list("pk"))


def _write_status(pk: UUID, status: OperStatus, at: datetime) -> bool:
    vll = Vll.objects.filter(pk=pk, lifecycle__in=IN_SERVICE).exclude(oper_status=status)
    if not vll.update(oper_status=status):
        return False
    announce(f"vll.{status}", now=at, vll_id=pk)
    return True
