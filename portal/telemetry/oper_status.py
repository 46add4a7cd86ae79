"""Operational status of lines, from the observations of both ends and the age of these observations."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet
from msgspec.structs import asdict
from psycopg.types.json import Jsonb

from portal.core.db.statements import execute, rows_of
from portal.core.network.path_bfd import is_path_down
from portal.events.announcements import announce_of_lines
from portal.inventory.models import FRESH, ObservedRouter, Router, RouterSilence
from portal.inventory.reported_observation import EndObservation
from portal.vll.models import EndMove, Order, Vll, VllEnd
from portal.vll.operations.state_compare_and_swap import LockedLine, lines_lock, sync_move
from portal.vll.states import IN_SERVICE, TERMINAL_ORDER_STATES, OperStatus, OrderState

_MARKED_TOGETHER = 1000
_OBSERVED = "ends__port__router__observed"
# The lines that changed since the router's last report.
_CHANGED = """
SELECT DISTINCT e.vll_id
FROM vll_vllend e
JOIN inventory_port p ON p.id = e.port_id
WHERE p.router_id = %(router)s AND e.changed_since_report
"""
# The lines whose reported facts differ from the stored ones, and those that changed since the last report.
_WITH_CHANGES = """
SELECT DISTINCT e.vll_id
FROM vll_vllend e
JOIN inventory_port p ON p.id = e.port_id AND p.router_id = %(router)s
JOIN vll_vll v ON v.id = e.vll_id
LEFT JOIN jsonb_to_recordset(%(reported)s)
     AS reported (vll_id uuid, side text, revision bigint, link_up boolean, shut_down boolean,
                  reachable boolean, observed_in_sync boolean, policed boolean, path_state text,
                  path_since_ms bigint, drift jsonb, contested jsonb, vlan_loss jsonb)
  ON reported.vll_id = e.vll_id AND reported.side = e.side AND reported.revision = v.revision
WHERE e.changed_since_report OR v.lifecycle = ANY(%(in_service)s) AND
      (e.link_up, e.held_down, e.reachable, e.observed_in_sync, e.policed, e.path_state, e.path_since_ms,
       e.drift, e.contested, e.vlan_loss) IS DISTINCT FROM
      (reported.link_up, coalesce(reported.shut_down, false), reported.reachable, reported.observed_in_sync,
       coalesce(reported.policed, false), coalesce(reported.path_state, ''), reported.path_since_ms,
       coalesce(reported.drift, '[]'), coalesce(reported.contested, '[]'), reported.vlan_loss)
"""
_STORE_FACTS = """
UPDATE vll_vllend AS e SET link_since = CASE WHEN (e.link_up, e.held_down) IS DISTINCT FROM
                                                  (reported.link_up, reported.shut_down)
                                             THEN %(now)s ELSE e.link_since END,
                      link_up = reported.link_up, held_down = reported.shut_down,
                      reachable = reported.reachable,
                      observed_in_sync = reported.observed_in_sync, policed = reported.policed,
                      path_state = reported.path_state, path_since_ms = reported.path_since_ms,
                      drift = reported.drift, contested = reported.contested,
                      vlan_loss = reported.vlan_loss
FROM jsonb_to_recordset(%(reported)s)
     AS reported (pk bigint, link_up boolean, shut_down boolean, reachable boolean,
                  observed_in_sync boolean, policed boolean, path_state text, path_since_ms bigint,
                  drift jsonb, contested jsonb, vlan_loss jsonb)
WHERE id = reported.pk
"""
_TURN = """
UPDATE vll_vll SET oper_status = turned.status, oper_since = turned.at
FROM unnest(%(lines)s::uuid[], %(statuses)s::text[], %(times)s::timestamptz[]) AS turned (line, status, at)
WHERE id = turned.line AND oper_status <> turned.status
"""


class _Facts(NamedTuple):
    """The facts about an end in a report. VllEnd has a field for each fact."""

    link_up: bool | None
    shut_down: bool
    reachable: bool | None
    observed_in_sync: bool | None
    policed: bool
    path_state: str
    path_since_ms: int | None
    drift: list[dict[str, Any]]
    contested: list[dict[str, Any]]
    vlan_loss: dict[str, Any] | None


_NO_FACTS = _Facts(None, False, None, None, False, "", None, [], [], None)


class _End(NamedTuple):
    """The fields of a VllEnd that decide the status, with the stored facts of the last report."""

    pk: int
    vll_id: UUID
    side: str
    port__router_id: int
    status: str
    status_revision: int
    status_observation: int | None
    status_at: datetime | None
    changed_since_report: bool
    facts: _Facts


_END_COLUMNS = _End._fields[:-1]


class Turn(NamedTuple):
    """A change of a line's operational status, and its time."""

    line: UUID
    status: OperStatus
    at: datetime


class _LastReports(NamedTuple):
    """The time and facts of routers' last reports, by router."""

    at: dict[int, datetime]
    vpp_absent: dict[int, bool]
    # The routers whose silence counts as down (portal.telemetry.router_silences).
    down: frozenset[int]

    def forwarding(self, now: datetime) -> dict[int, bool]:
        """Return whether these routers forward, as far as that is known (see oper_status_of)."""
        fresh = {router: not self.vpp_absent[router] for router in self.at if not self.is_silent(router, now)}
        return dict.fromkeys(self.down, False) | fresh

    def is_silent(self, router: int, now: datetime) -> bool:
        return router not in self.at or self.at[router] < now - FRESH


@transaction.atomic(savepoint=False)
def ends_observed(
    *,
    router: Router,
    ends: Iterable[EndObservation],
    now: datetime,
    observation_number: int | None = None,
    repeated: bool = False,
    router_changed: bool = False,
    unknown_after: datetime | None = None,
) -> None:
    """Store this router's observations of its ends, and refresh the status of their VLLs.

    Ignore facts that are older than the agent's last answer about the same end: such a report was already
    under way when the answer came. ``observation_number``: the number of the agent's observation of VPP; None
    if the agent is too old to report it. While an order changes a line, also ignore facts about another
    revision than the line's present one.

    Read only lines with new facts, and lines that changed since the router's last report. The status of other
    lines cannot have changed. ``repeated``: the report repeats all facts of the last one. ``router_changed``:
    the state of the router itself changed, which affects all its lines. ``unknown_after``: the time of the
    previous report, if the router was silent since then and the silence does not count as down. It is needed
    because the portal may have been down too, so that no process has recorded the silence.
    """
    found = _all_on(router) if router_changed else _with_changes(router, None if repeated else ends)
    if not found:
        return
    # All processes lock lines in the same order, and lines before their ends. The locked rows cannot change
    # before the write.
    lines = lines_lock(found)
    ends_of = _ends_of(found)
    own_ends = [end for both in ends_of.values() for end in both if end.port__router_id == router.pk]
    # If the report repeats the last one, its facts are stored already. Only ends that have changed since then
    # must be compared.
    to_compare = {end.vll_id for end in own_ends if end.changed_since_report or not repeated}
    reported = {(end.vll, str(end.side)): end for end in ends} if to_compare else {}
    last_reports = _last_reports(ends_of)
    turns: list[Turn] = []
    if unknown_after is not None:
        turns = _silenced(
            lines, ends_of, last_reports._replace(at=last_reports.at | {router.pk: unknown_after}), now
        )
    unknown = {turn.line for turn in turns}
    forwarding = {router.pk: True} | last_reports.forwarding(now)
    revisions = {line.pk: line.revision for line in lines if line.lifecycle in IN_SERVICE}
    facts_of = {
        end.pk: _facts(reported.get((str(end.vll_id), end.side)), revisions[end.vll_id])
        for end in own_ends
        if end.vll_id in to_compare and end.vll_id in revisions
    }
    changing = _being_changed({end.vll_id for end in own_ends if facts_of.get(end.pk) is _NO_FACTS}, now)
    changed: dict[int, _Facts] = {}
    compared: set[int] = set()
    overtaken: set[int] = set()
    syncs: dict[UUID, bool] = {}
    for vll, lifecycle, revision, was, was_in_sync in lines:
        both = ends_of[vll]
        own = [at for at, end in enumerate(both) if end.port__router_id == router.pk]
        if lifecycle not in IN_SERVICE:
            compared.update(both[at].pk for at in own)
            continue
        for at in own:
            end = both[at]
            if _answered_since(end, observation_number, now) or (
                vll in changing and facts_of.get(end.pk) is _NO_FACTS
            ):
                overtaken.add(end.pk)
                continue
            compared.add(end.pk)
            if vll not in to_compare:
                continue
            facts = facts_of[end.pk]
            if facts != end.facts:
                both[at] = end._replace(facts=facts)
                changed[end.pk] = facts
        status, in_sync = oper_status_of(both, forwarding), _is_in_sync(both, revision)
        if status != (OperStatus.UNKNOWN if vll in unknown else was):
            turns.append(Turn(vll, status, now))
        if in_sync != was_in_sync:
            syncs[vll] = in_sync
    _facts_write(changed, now)
    statuses_write(turns)
    for pk in syncs:
        sync_move(pk, syncs[pk], now=now)
    # Write these marks last, so that the writes above do not count as changes for this router. If this report
    # was older than an answer about an end, the next report about that end is compared again.
    marked = {end.pk for end in own_ends if end.changed_since_report} | changed.keys()
    if compared & marked:
        VllEnd.objects.filter(pk__in=compared & marked).update(changed_since_report=False)
    if overtaken - marked:
        VllEnd.objects.filter(pk__in=overtaken - marked).update(changed_since_report=True)


def stale_vlls_mark(*, now: datetime) -> int:
    """Set VLLs whose routers have become silent to op-unknown; return how many.

    Their status is unknown from the time when the reports were no longer fresh, even if the portal notices it
    later. While the portal itself is away, the status is unknown too. The start of the status is never dated
    before the last move of the line's ends.

    Each transaction handles a limited number of lines. Otherwise reports about other lines could wait for the
    lines of a whole network. A statement could also exceed PostgreSQL's limit of 65,535 parameters.
    """
    _find_silent(now)
    lines = sorted(set(_stale(now).values_list("pk", flat=True)))
    return sum(
        _mark_stale(lines[at : at + _MARKED_TOGETHER], now) for at in range(0, len(lines), _MARKED_TOGETHER)
    )


@transaction.atomic
def _find_silent(now: datetime) -> None:
    """Mark routers as silent before the status of their lines becomes unknown.

    A report that arrives after the mark causes a check of all the router's lines. A report that arrives
    before the mark is known when the lines are read.
    """
    silent = ObservedRouter.objects.filter(reported_at__lt=now - FRESH, found_silent=False)
    found = list(silent.order_by("pk").select_for_update(no_key=True).values_list("pk", flat=True))
    ObservedRouter.objects.filter(pk__in=found).update(found_silent=True)


@transaction.atomic
def _mark_stale(vlls: Collection[UUID], now: datetime) -> int:
    # The rows that are read after this lock include all reports that arrived earlier.
    lines = lines_lock(vlls)
    ends_of = _ends_of(vlls)
    turns = _silenced(lines, ends_of, _last_reports(ends_of), now)
    statuses_write(turns)
    return len(turns)


def _silenced(
    lines: Iterable[LockedLine],
    ends_of: Mapping[UUID, Sequence[_End]],
    last_reports: _LastReports,
    now: datetime,
) -> list[Turn]:
    """Return the changes to op-unknown, for lines whose status is unknown because a router is silent."""
    forwarding = last_reports.forwarding(now)
    reports: dict[UUID, list[datetime]] = {}
    for line in lines:
        ends = ends_of[line.pk]
        routers = {end.port__router_id for end in ends}
        if (
            line.lifecycle in IN_SERVICE
            and line.oper_status != OperStatus.UNKNOWN
            and any(last_reports.is_silent(router, now) for router in routers)
            # The line may be down instead, because of the other end or a silence that counts as down.
            and oper_status_of(ends, forwarding) == OperStatus.UNKNOWN
        ):
            reports[line.pk] = [last_reports.at[router] for router in routers if router in last_reports.at]
    if not reports:
        return []
    left = EndMove.objects.filter(vll__in=reports).values_list("vll").annotate(Max("left_at"))
    moved: dict[UUID, datetime] = dict(left)
    turns = []
    for vll, at in reports.items():
        since = min(at) + FRESH if at else now
        turns.append(Turn(vll, OperStatus.UNKNOWN, max(since, moved.get(vll, since))))
    return turns


@transaction.atomic
def oper_statuses_refresh(*, router_id: int, now: datetime) -> set[UUID]:
    """Refresh the status of all lines of a router whose own state changed; return the lines that changed."""
    on_router = Vll.objects.filter(ends__port__router=router_id, lifecycle__in=IN_SERVICE)
    lines = lines_lock(set(on_router.values_list("pk", flat=True)))
    ends_of = _ends_of([line.pk for line in lines])
    forwarding = _last_reports(ends_of).forwarding(now)
    statuses = [(line, oper_status_of(ends_of[line.pk], forwarding)) for line in lines]
    turns = [
        Turn(line.pk, status, now)
        for line, status in statuses
        if line.lifecycle in IN_SERVICE and status != line.oper_status
    ]
    statuses_write(turns)
    return {turn.line for turn in turns}


def _stale(now: datetime) -> QuerySet[Vll]:
    """Select lines with a silent router that are neither op-unknown nor down because of the silence."""
    silent = Q(**{f"{_OBSERVED}__isnull": True}) | Q(**{f"{_OBSERVED}__reported_at__lt": now - FRESH})
    down = VllEnd.objects.filter(vll=OuterRef("pk"), port__router__in=_down().values("router"))
    return Vll.objects.filter(~Exists(down), silent, lifecycle__in=IN_SERVICE).exclude(
        oper_status=OperStatus.UNKNOWN
    )


def _down() -> QuerySet[RouterSilence]:
    """Select the silences that count as down (portal.telemetry.router_silences)."""
    return RouterSilence.objects.filter(until__isnull=True, counts_as_down=True)


def oper_status_of(ends: Iterable[_End], forwarding: dict[int, bool]) -> OperStatus:
    """Return the status. op-up: both UNIs have link, the path is up, reports are fresh (RFC 9181).

    If both routers watch the path, the line is down when one of them reports the path as down. If only one
    router watches the path, its report does not count, because the other router may not send BFD packets. On
    every path, an end is down if the route of its tunnel drops packets.

    ``forwarding``: whether each router forwards. A router with fresh reports forwards if it runs a VPP. A
    router whose silence counts as down does not forward. Other silent routers are not in the mapping. If one
    end is down, the line is down, even if nothing is known about the other end. Otherwise the status is
    unknown if a fact about one end is missing.
    """
    both = tuple(ends)
    statuses = {_status_at(end, forwarding.get(end.port__router_id)) for end in both}
    if is_path_down(end.facts.path_state for end in both):
        statuses.add(OperStatus.DOWN)
    return next(
        status for status in (OperStatus.DOWN, OperStatus.UNKNOWN, OperStatus.UP) if status in statuses
    )


def _status_at(end: _End, forwards: bool | None) -> OperStatus:
    if forwards is False:
        return OperStatus.DOWN
    if forwards is None or end.facts.link_up is None:
        return OperStatus.UNKNOWN
    return OperStatus.UP if end.facts.link_up and end.facts.reachable is not False else OperStatus.DOWN


def _is_in_sync(ends: Iterable[_End], revision: int) -> bool:
    """Return whether both ends were read back at this revision, and no later observation differs."""
    return all(
        end.status == VllEnd.Status.VERIFIED
        and end.status_revision == revision
        and end.facts.observed_in_sync is not False
        for end in ends
    )


def _being_changed(lines: Collection[UUID], now: datetime) -> set[UUID]:
    """Return the lines with an open order in its state for less than FRESH. Older reports are stale then."""
    if not lines:
        return set()
    begun = Order.objects.filter(vll__in=lines, state_at__gte=now - FRESH)
    return set(
        begun.exclude(state__in=[*TERMINAL_ORDER_STATES, OrderState.PENDING_APPROVAL]).values_list(
            "vll", flat=True
        )
    )


def _facts(reported: EndObservation | None, revision: int) -> _Facts:
    """Return the facts about this revision, or _NO_FACTS, such as for an end that has just moved here."""
    return _NO_FACTS if reported is None or reported.revision != revision else _facts_of(reported)


def _facts_of(reported: EndObservation) -> _Facts:
    in_sync = reported.in_sync and not reported.drift
    drift, contested = (
        [asdict(each) for each in differences] for differences in (reported.drift, reported.contested)
    )
    # While path watching is being switched off, one router's BFD session ends before the other's. The router
    # that still has a session then reports the path as down, but the line is not down.
    path = reported.path if settings.LONGLINE_PATH_WATCH else None
    state, since = (path.state, path.since_ms) if path else ("", None)
    return _Facts(
        link_up=reported.link_up,
        shut_down=reported.shut_down,
        reachable=reported.reachable,
        observed_in_sync=in_sync,
        policed=reported.policed,
        path_state=state,
        path_since_ms=since,
        drift=drift,
        contested=contested,
        vlan_loss=asdict(reported.vlan_loss) if reported.vlan_loss else None,
    )


def _answered_since(end: _End, observation_number: int | None, now: datetime) -> bool:
    """Return whether the agent answered for this end after that observation.

    Only a fresh answer counts: the numbers come from the agent's clock, which may have been set back.
    """
    return (
        observation_number is not None
        and end.status_observation is not None
        and end.status_at is not None
        and observation_number < end.status_observation
        and now - end.status_at <= FRESH
    )


def _with_changes(router: Router, ends: Iterable[EndObservation] | None) -> set[UUID]:
    """Return the lines on the router that must be checked; ``ends`` None: the report repeats all facts."""
    if ends is None:
        return {vll for (vll,) in rows_of(_CHANGED, {"router": router.pk})}
    reported = [
        {"vll_id": end.vll, "side": end.side, "revision": end.revision, **_facts_of(end)._asdict()}
        for end in ends
    ]
    parameters = {"router": router.pk, "in_service": sorted(IN_SERVICE), "reported": Jsonb(reported)}
    return {vll for (vll,) in rows_of(_WITH_CHANGES, parameters)}


def _facts_write(facts: Mapping[int, _Facts], now: datetime) -> None:
    """Store the reported facts of these ends. The caller has locked their lines."""
    if facts:
        reported = Jsonb([{"pk": pk, **facts[pk]._asdict()} for pk in facts])
        execute(_STORE_FACTS, {"reported": reported, "now": now})


def _all_on(router: Router) -> set[UUID]:
    """Return the lines on the router that are in service or have changed since its last report."""
    compared = VllEnd.objects.filter(
        Q(vll__lifecycle__in=IN_SERVICE) | Q(changed_since_report=True), port__router=router
    )
    return set(compared.values_list("vll", flat=True))


def _ends_of(lines: Collection[UUID]) -> dict[UUID, list[_End]]:
    """Return the ends of these lines. For all lines of a router, tuples cost less than model instances."""
    ends_of: dict[UUID, list[_End]] = defaultdict(list)
    columns = len(_END_COLUMNS)
    for row in VllEnd.objects.filter(vll__in=lines).values_list(*_END_COLUMNS, *_Facts._fields):
        end = _End._make((*row[:columns], _Facts(*row[columns:])))
        ends_of[end.vll_id].append(end)
    return ends_of


def _last_reports(ends_of: Mapping[UUID, Iterable[_End]]) -> _LastReports:
    routers = {end.port__router_id for ends in ends_of.values() for end in ends}
    reports = ObservedRouter.objects.filter(router__in=routers)
    at, vpp_absent = {}, {}
    for router, reported_at, absent in reports.values_list("router_id", "reported_at", "vpp_absent"):
        at[router], vpp_absent[router] = reported_at, absent
    down = _down().filter(router__in=routers).values_list("router_id", flat=True)
    return _LastReports(at, vpp_absent, frozenset(down))


def statuses_write(turns: Sequence[Turn]) -> None:
    """Write the new status of locked lines.

    A line may have two changes: first it was unknown for a while, then it got its present status. The number
    of statements does not depend on the number of lines. Otherwise, when a whole network comes back, its
    reports would be stale before they are processed.
    """
    if not turns:
        return
    last = {turn.line: turn for turn in turns}
    columns = {
        "lines": list(last),
        "statuses": [turn.status for turn in last.values()],
        "times": [turn.at for turn in last.values()],
    }
    execute(_TURN, columns)
    for status in (OperStatus.UNKNOWN, OperStatus.DOWN, OperStatus.UP):
        announce_of_lines(f"vll.{status}", {turn.line: turn.at for turn in turns if turn.status == status})
