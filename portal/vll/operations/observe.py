"""Operational status: from what the agents observe of both ends, and from how fresh that is."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Exists, Max, Min, OuterRef, Q, QuerySet
from psycopg.types.json import Jsonb

from portal.core.lazy_list import LazyList
from portal.core.recurring import Recurring
from portal.events.operations import announce_of_lines
from portal.inventory.models import ObservedRouter, Router, RouterSilence
from portal.vll.models import Vll, VllEnd
from portal.vll.operations.answers import EndObservation
from portal.vll.operations.transitions import sync_move
from portal.vll.states import IN_SERVICE, OperStatus

# Three report intervals and a little: an agent reports every 10 s.
FRESH = timedelta(seconds=35)
_MARKED_TOGETHER = 1000
_OBSERVED = "ends__port__router__observed"
# The lines of which a report says something else than what is stored, or that changed since the last one.
_WITH_NEWS = """
SELECT DISTINCT e.vll_id
FROM vll_vllend e
JOIN inventory_port p ON p.id = e.port_id AND p.router_id = %(router)s
JOIN vll_vll v ON v.id = e.vll_id
LEFT JOIN unnest(%(vlls)s::uuid[], %(sides)s::text[], %(revisions)s::bigint[], %(link_up)s::boolean[],
                 %(reachable)s::boolean[], %(observed_in_sync)s::boolean[], %(policed)s::boolean[],
                 %(drift)s::jsonb[], %(contested)s::jsonb[])
     AS said (vll_id, side, revision, link_up, reachable, in_sync, policed, drift, contested)
  ON said.vll_id = e.vll_id AND said.side = e.side AND said.revision = v.revision
WHERE e.changed_since_report OR v.lifecycle = ANY(%(in_service)s) AND
      (e.link_up, e.reachable, e.observed_in_sync, e.policed, e.drift, e.contested) IS DISTINCT FROM
      (said.link_up, said.reachable, said.in_sync, coalesce(said.policed, false), coalesce(said.drift, '[]'),
       coalesce(said.contested, '[]'))
"""
_TURN = """
UPDATE vll_vll SET oper_status = %(status)s
WHERE id = ANY(%(vlls)s) AND lifecycle = ANY(%(in_service)s) AND oper_status <> %(status)s
RETURNING id
"""


class _Facts(NamedTuple):
    """What a report says of an end: these fields of a VllEnd."""

    link_up: bool | None
    reachable: bool | None
    observed_in_sync: bool | None
    policed: bool
    drift: list[dict[str, Any]]
    contested: list[dict[str, Any]]


_UNSAID = _Facts(None, None, None, False, [], [])


class _End(NamedTuple):
    """What is looked at of an end: these fields of a VllEnd."""

    pk: int
    vll_id: UUID
    side: str
    port__router_id: int
    status: str
    status_revision: int
    status_look: int | None
    status_at: datetime | None
    link_up: bool | None
    reachable: bool | None
    observed_in_sync: bool | None
    policed: bool
    drift: list[dict[str, Any]]
    contested: list[dict[str, Any]]


_changed_on = Recurring[VllEnd](
    lambda router: VllEnd.objects.filter(port__router=router, changed_since_report=True)
)


@transaction.atomic(savepoint=False)
def ends_observed(
    *,
    router: Router,
    ends: Sequence[EndObservation],
    now: datetime,
    look: int | None = None,
    repeated: bool = False,
    anew: bool = False,
) -> None:
    """Store what this router's agent says of its ends, and refresh the status of their VLLs.

    What it saw before it answered for an end is no news about that end: such a report was on its way already
    when the answer came. ``look`` is the number of its look at VPP; None: the agent is too old to say.

    Only the lines of which it says something new are read, and those that changed since its last report:
    of the others it is known what would be found. ``repeated``: it says of all ends what it said last.
    ``anew``: what is to be thought of the router itself changed, and with it of all its lines.
    """
    found = _with_news(router, None if repeated else ends)
    if anew:
        found |= set(_in_service_on(router))
    if not found:
        return
    # In one order, and before their ends, as everybody does. What is read now stays true until it is written.
    lines_lock(found)
    said = {(end.vll, end.side): end for end in said_of(ends, found)}
    ends_of = _ends_of(found)
    forwarding = {router.pk: True} | _forwarding(ends_of, now)
    changed: list[VllEnd] = []
    compared: list[int] = []
    overtaken: list[int] = []
    statuses: dict[UUID, tuple[OperStatus, datetime]] = {}
    syncs: dict[UUID, bool] = {}
    lines = Vll.objects.filter(pk__in=found)
    for vll, lifecycle, revision, was, was_in_sync in lines.values_list(
        "pk", "lifecycle", "revision", "oper_status", "in_sync"
    ):
        both = ends_of[vll]
        own = [at for at, end in enumerate(both) if end.port__router_id == router.pk]
        if lifecycle not in IN_SERVICE:
            compared += [both[at].pk for at in own]
            continue
        for at in own:
            end = both[at]
            if _answered_since(end, look, now):
                overtaken.append(end.pk)
                continue
            compared.append(end.pk)
            facts = _facts(said.get((vll, end.side)), revision)
            both[at] = end._replace(**facts._asdict())
            if both[at] != end:
                changed.append(VllEnd(pk=end.pk, **facts._asdict()))
        status, in_sync = oper_status_of(both, forwarding), _is_in_sync(both, revision)
        if status != was:
            statuses[vll] = (status, now)
        if in_sync != was_in_sync:
            syncs[vll] = in_sync
    VllEnd.objects.bulk_update(changed, _Facts._fields, batch_size=500)
    statuses_write(statuses)
    for pk in syncs:
        sync_move(pk, syncs[pk], now=now)
    # Last: what was written just now is no news to this router. What an answer overtook is compared later.
    for ends_with, waits in ((compared, False), (overtaken, True)):
        marked = VllEnd.objects.filter(pk__in=ends_with, changed_since_report=not waits)
        marked.update(changed_since_report=waits)


def stale_vlls_mark(*, now: datetime, router: Router | None = None) -> int:
    """Turn VLLs (of ``router``) whose routers have fallen silent to op-unknown; how many.

    Since their reports are no longer fresh, however late that is noticed: while the portal itself is away,
    nothing is known either. Not since before the line's ends are where they are now.

    Some at a time, each in a transaction of its own: reports about the others do not wait for all of a
    network's lines, and PostgreSQL takes 65,535 parameters.
    """
    stale = _stale(now)
    if router is not None:
        stale = stale.filter(ends__port__router=router)
    lines = sorted(set(stale.values_list("pk", flat=True)))
    return sum(
        _mark_stale(lines[at : at + _MARKED_TOGETHER], now) for at in range(0, len(lines), _MARKED_TOGETHER)
    )


@transaction.atomic
def _mark_stale(lines: Collection[UUID], now: datetime) -> int:
    lines_lock(lines)
    # Looked at again: what a report said in between stays.
    found = (
        _stale(now)
        .filter(pk__in=lines)
        .annotate(heard=Min(f"{_OBSERVED}__reported_at"), moved=Max("moves__left_at"))
        .values_list("pk", "heard", "moved")
    )
    ends_of = _ends_of(lines)
    forwarding = _forwarding(ends_of, now)
    unknown = {}
    for vll, heard, moved in found:
        # What the living end says of it counts.
        if oper_status_of(ends_of[vll], forwarding) == OperStatus.UNKNOWN:
            since = now if heard is None else heard + FRESH
            unknown[vll] = (OperStatus.UNKNOWN, since if moved is None else max(since, moved))
    return len(statuses_write(unknown))


@transaction.atomic
def oper_statuses_refresh(*, router_id: int, now: datetime) -> set[UUID]:
    """Look at a router's lines again, since something is known of the router itself; those that turned."""
    lines = Vll.objects.filter(ends__port__router=router_id, lifecycle__in=IN_SERVICE)
    lines_lock(set(lines.values_list("pk", flat=True)))
    ends_of = _ends_of(lines.values("pk"))
    forwarding = _forwarding(ends_of, now)
    return statuses_write({vll: (oper_status_of(ends, forwarding), now) for vll, ends in ends_of.items()})


def _stale(now: datetime) -> QuerySet[Vll]:
    """What is not op-unknown though a router of it has fallen silent, and does not count as down for it."""
    silent = Q(**{f"{_OBSERVED}__isnull": True}) | Q(**{f"{_OBSERVED}__reported_at__lt": now - FRESH})
    down = VllEnd.objects.filter(vll=OuterRef("pk"), port__router__in=_down().values("router"))
    return Vll.objects.filter(~Exists(down), silent, lifecycle__in=IN_SERVICE).exclude(
        oper_status=OperStatus.UNKNOWN
    )


def _down() -> QuerySet[RouterSilence]:
    """The silences that count as down (portal.telemetry.silences)."""
    return RouterSilence.objects.filter(until__isnull=True, counts_as_down=True)


def oper_status_of(ends: Iterable[_End], forwarding: dict[int, bool]) -> OperStatus:
    """op-up: both UNIs have link, no tunnel's route is a drop, reports are fresh (RFC 9181).

    ``forwarding``: whether the routers of which anything is known forward: those whose reports are fresh, by
    whether they run a VPP, and not those whose silence counts as down. One end that is down is enough,
    whatever the other one says; unknown is what nobody says, and not what is no longer there.
    """
    seen = {_seen_at(end, forwarding.get(end.port__router_id)) for end in ends}
    return next(status for status in (OperStatus.DOWN, OperStatus.UNKNOWN, OperStatus.UP) if status in seen)


def _seen_at(end: _End, forwards: bool | None) -> OperStatus:
    """What is known of one end alone."""
    if forwards is False:
        return OperStatus.DOWN
    if forwards is None or end.link_up is None:
        return OperStatus.UNKNOWN
    return OperStatus.UP if end.link_up and end.reachable is not False else OperStatus.DOWN


def _is_in_sync(ends: Iterable[_End], revision: int) -> bool:
    """Both ends were read back at this revision, and no agent has seen otherwise since."""
    return all(
        end.status == VllEnd.Status.VERIFIED
        and end.status_revision == revision
        and end.observed_in_sync is not False
        for end in ends
    )


def _facts(said: EndObservation | None, revision: int) -> _Facts:
    """What is said of this revision of the line."""
    return _UNSAID if said is None or said.revision != revision else _facts_of(said)


def _facts_of(said: EndObservation) -> _Facts:
    in_sync = said.in_sync and not said.drift
    return _Facts(said.link_up, said.reachable, in_sync, said.policed, said.drift, said.contested)


def _answered_since(end: _End, look: int | None, now: datetime) -> bool:
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


def _with_news(router: Router, ends: Sequence[EndObservation] | None) -> set[UUID]:
    """The lines on the router that are to be looked at; ``ends`` None: all is said as it was."""
    if ends is None:
        return {end.vll_id for end in _changed_on(router.pk)}
    facts = [_facts_of(end) for end in ends]
    with connection.cursor() as cursor:
        cursor.execute(
            _WITH_NEWS,
            {
                "router": router.pk,
                "in_service": sorted(IN_SERVICE),
                "vlls": [end.vll for end in ends],
                "sides": [end.side for end in ends],
                "revisions": [end.revision for end in ends],
                **{name: [_column(getattr(each, name)) for each in facts] for name in _Facts._fields},
            },
        )
        return {vll for (vll,) in cursor.fetchall()}


def _column(fact: Any) -> Any:
    return Jsonb(fact) if isinstance(fact, list) else fact


def said_of(ends: Sequence[EndObservation], vlls: Collection[UUID]) -> Sequence[EndObservation]:
    """What is said of these lines; nothing else is decoded where that can be helped."""
    if isinstance(ends, LazyList):
        return ends.where("vll", {str(vll) for vll in vlls})
    return ends


def _in_service_on(router: Router) -> QuerySet[Vll, UUID]:
    on_router = Vll.objects.filter(ends__port__router=router, lifecycle__in=IN_SERVICE)
    return on_router.values_list("pk", flat=True).distinct()


def _ends_of(lines: Collection[UUID] | QuerySet[Vll, Any]) -> dict[UUID, list[_End]]:
    """The ends of these lines. Rows, not models: of a router that comes back all lines are looked at."""
    ends_of: dict[UUID, list[_End]] = defaultdict(list)
    for row in VllEnd.objects.filter(vll__in=lines).values_list(*_End._fields):
        end = _End(*row)
        ends_of[end.vll_id].append(end)
    return ends_of


def _forwarding(ends_of: Mapping[UUID, Iterable[_End]], now: datetime) -> dict[int, bool]:
    """The ends' routers of which is known whether they forward (see oper_status_of)."""
    routers = {end.port__router_id for ends in ends_of.values() for end in ends}
    fresh = ObservedRouter.objects.filter(reported_at__gte=now - FRESH, router__in=routers)
    down = dict.fromkeys(_down().filter(router__in=routers).values_list("router_id", flat=True), False)
    return down | {router: not absent for router, absent in fresh.values_list("router_id", "vpp_absent")}


def lines_lock(vlls: Collection[UUID]) -> None:
    """In the one order in which everybody locks lines."""
    if vlls:
        list(Vll.objects.filter(pk__in=vlls).order_by("pk").select_for_update(no_key=True).values_list("pk"))


def statuses_write(told: Mapping[UUID, tuple[OperStatus, datetime]]) -> set[UUID]:
    """Give lines another status, and since when it holds; those that turned. Whoever calls has locked them.

    As many statements for all lines of a router as for one: a network that comes back at once has to be read
    faster than it falls silent again.
    """
    turned: set[UUID] = set()
    with connection.cursor() as cursor:
        for status in sorted({status for status, _ in told.values()}):
            since = {pk: at for pk, (new, at) in told.items() if new == status}
            cursor.execute(_TURN, {"status": status, "vlls": list(since), "in_service": sorted(IN_SERVICE)})
            found = {pk for (pk,) in cursor.fetchall()}
            announce_of_lines(f"vll.{status}", {pk: at for pk, at in since.items() if pk in found})
            turned |= found
    return turned
