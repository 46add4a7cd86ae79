"""Alarms about lines that are down or differ from their order, about orders, and about failed tests.

The alarms about lines are grouped by cause: a port causes one alarm, however many lines it carries. A line
causes no alarm if a silent router or a router without VPP explains its state.
"""

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from portal.alarms.affected_lines import SUMMARY, named, of_lines, summed
from portal.alarms.kinds import Affected, AlarmCondition, Kind
from portal.alarms.router_alarms import troubled_routers
from portal.core.clock import to_time
from portal.core.db.statements import rows_of
from portal.core.network.path_bfd import LISTENING
from portal.core.reader_texts import in_english
from portal.diagnosis.models import TroubleReport
from portal.inventory.models import ObservedPath, Port, Router
from portal.vll import queries
from portal.vll.models import ActivationTest, Order, TunnelPath, Vll, VllEnd
from portal.vll.operations.link_loss_forwarding import timing
from portal.vll.path_status import lines_beyond
from portal.vll.sentences import activation_test_facts, activation_test_sentence, black_hole_facts
from portal.vll.states import IN_SERVICE, TERMINAL_LIFECYCLES, TERMINAL_ORDER_STATES, OrderState

# After the link of one end has returned, the agent of the other end must set up its port within this time.
_SET_UP_WITHIN = timedelta(seconds=60)
# An alarm names at most this many changes by other programs.
_CHANGES_NAMED = 3


def _shut_down_for_a_reason(near: str, far: str) -> str:
    """Return SQL that is true if the ``near`` port of a line is shut down for a valid reason.

    A valid reason is one of these:

    * The link of the ``far`` port is lost, or has returned only recently.
    * The ``near`` port is just being set up.
    * The far router is declared dead. The state of its link is then unknown.
    """
    return f"""
        {near}.held_down AND coalesce(
            CASE WHEN loss.held = '' THEN loss.turned_at > %(set_up_since)s
                 ELSE {far}.link_up IS NOT TRUE OR {far}.link_since > %(back_since)s
                      OR r{far}.dead_since IS NOT NULL END, false)
    """


# A port without link explains a silent path, but a silent path does not explain a port without link. The
# diagnosis has the same order of causes. As in portal.core.network.path_bfd, a path is down if both routers
# have a session and one of the two receives nothing.
_DOWN = f"""
WITH down AS (
    SELECT line.id, line.created_at, line.customer_id, line.oper_since AS since, line.family,
           a.port_id AS a_port, z.port_id AS z_port, pa.router_id AS a_router, pz.router_id AS z_router,
           a.link_up IS FALSE AND NOT a.held_down AND pa.router_id <> ALL(%(troubled)s) AS a_is_cut_off,
           z.link_up IS FALSE AND NOT z.held_down AND pz.router_id <> ALL(%(troubled)s) AS z_is_cut_off,
           pa.router_id = ANY(%(troubled)s) OR pz.router_id = ANY(%(troubled)s)
           OR {_shut_down_for_a_reason("a", "z")} OR {_shut_down_for_a_reason("z", "a")} AS is_explained,
           line.family IS NOT NULL AND pa.router_id <> pz.router_id
           AND (a.reachable IS FALSE OR z.reachable IS FALSE
                OR 'down' IN (a.path_state, z.path_state)
                   AND a.path_state = ANY(%(listening)s) AND z.path_state = ANY(%(listening)s)
           ) AS is_without_path
    FROM vll_vll AS line
    JOIN vll_vllend AS a ON a.vll_id = line.id AND a.side = 'a'
    JOIN inventory_port AS pa ON pa.id = a.port_id
    JOIN inventory_router AS ra ON ra.id = pa.router_id
    JOIN vll_vllend AS z ON z.vll_id = line.id AND z.side = 'z'
    JOIN inventory_port AS pz ON pz.id = z.port_id
    JOIN inventory_router AS rz ON rz.id = pz.router_id
    LEFT JOIN vll_forwardedlinkloss AS loss ON loss.vll_id = line.id
    WHERE line.lifecycle = 'active' AND line.oper_status = 'op-down'
), cause AS (
    SELECT 'port:' || a_port AS object, down.* FROM down WHERE a_is_cut_off
    UNION ALL
    SELECT 'port:' || z_port, down.* FROM down WHERE z_is_cut_off AND z_port <> a_port
    UNION ALL
    SELECT CASE WHEN is_without_path
                THEN concat_ws(':', 'path', least(a_router, z_router), greatest(a_router, z_router), family)
                ELSE 'line:' || id END, down.*
    FROM down WHERE NOT (a_is_cut_off OR z_is_cut_off OR is_explained)
)
SELECT object, min(since), {SUMMARY} FROM cause GROUP BY object ORDER BY object
"""  # noqa: S608 - constants
# Lines with an open order are left out, because the order explains the difference. Lines that another program
# changes are left out, because they have an alarm of their own.
_DIFFERING = f"""
WITH differing AS (
    SELECT line.id, line.created_at, line.customer_id, line.in_sync_since AS since, line.revision
    FROM vll_vll AS line
    WHERE line.lifecycle = 'active' AND NOT line.in_sync
      AND NOT EXISTS (SELECT FROM vll_order AS placed
                      WHERE placed.vll_id = line.id AND placed.state <> ALL(%(settled)s))
      AND NOT EXISTS (SELECT FROM vll_vllend AS contested
                      WHERE contested.vll_id = line.id AND contested.contested <> '[]')
), ends AS (
    SELECT DISTINCT differing.id, port.router_id
    FROM differing
    JOIN vll_vllend AS line_end ON line_end.vll_id = differing.id
     AND (line_end.status <> 'verified' OR line_end.status_revision <> differing.revision
          OR line_end.observed_in_sync IS FALSE)
    JOIN inventory_port AS port ON port.id = line_end.port_id
), cause AS (
    SELECT coalesce('router:' || ends.router_id, 'line:' || id) AS object, differing.*
    FROM differing LEFT JOIN ends USING (id)
    WHERE ends.router_id IS NULL OR ends.router_id <> ALL(%(troubled)s)
)
SELECT object, min(since), {SUMMARY} FROM cause GROUP BY object ORDER BY object
"""  # noqa: S608 - constants


class _Cause(NamedTuple):
    """The cause of an alarm: its object, and the object's parts ``what`` (the type) and ``ids``."""

    object: str
    what: str
    ids: list[str]
    since: datetime | None
    affected: Affected

    def alarm(self, kind: Kind, name: str, routers: tuple[int, ...] = (), **facts: str) -> AlarmCondition:
        return AlarmCondition(
            kind=kind,
            object=self.object,
            name=name,
            since=self.since,
            facts=facts,
            routers=routers,
            affected=self.affected,
        )


def down(now: datetime) -> Iterator[AlarmCondition]:
    """Yield the causes of lines being down: ports, paths, the line itself. Also yield watched paths that are
    down.
    """
    troubled = troubled_routers(now)
    set_up_since = now - _SET_UP_WITHIN
    causes = _causes(
        _DOWN,
        troubled=list(troubled),
        listening=sorted(LISTENING),
        set_up_since=set_up_since,
        back_since=set_up_since - timing().longest_up,
    )
    watched = {each.object: each for each in _watched_paths("down", troubled)}
    ports = Port.objects.select_related("router").in_bulk(_ids(causes, "port"))
    routers = _router_names(causes)
    for cause in causes:
        if cause.what == "port":
            port = ports[int(cause.ids[0])]
            yield cause.alarm(Kind.PORT_DOWN, str(port), (port.router_id,))
        elif cause.what == "path":
            a, z, _family = map(int, cause.ids)
            session = watched.pop(cause.object, None)
            why = "no_route" if session is None else "unheard"
            yield cause.alarm(Kind.PATH_DOWN, f"{routers[a]} – {routers[z]}", (a, z), why=why)
        else:
            yield cause.alarm(Kind.LINE_DOWN, _line_name(cause))
    yield from watched.values()


def differing(now: datetime) -> Iterator[AlarmCondition]:
    settled = [*sorted(TERMINAL_ORDER_STATES), OrderState.PENDING_APPROVAL.value]
    causes = _causes(_DIFFERING, troubled=list(troubled_routers(now)), settled=settled)
    routers = _router_names(causes)
    for cause in causes:
        if cause.what == "router":
            router = int(cause.ids[0])
            yield cause.alarm(Kind.ROUTER_DIFFERS, routers[router], (router,))
        else:
            yield cause.alarm(Kind.LINE_DIFFERS, _line_name(cause))


def contested(now: datetime) -> Iterator[AlarmCondition]:
    """Yield the routers on which another program changes the VPP configuration of lines."""
    ends = VllEnd.objects.exclude(contested=[]).filter(vll__lifecycle__in=IN_SERVICE)
    of_router: dict[Router, list[VllEnd]] = {}
    for end in ends.select_related("vll__customer", "port__router").order_by("port__router__name", "pk"):
        of_router.setdefault(end.port.router, []).append(end)
    for router, its_ends in of_router.items():
        changes = [each for end in its_ends for each in end.contested]
        lines = {end.vll_id: end.vll for end in its_ends}
        yield AlarmCondition(
            kind=Kind.CONTESTED,
            object=f"router:{router.pk}",
            name=router.name,
            since=to_time(min(each["since_ms"] for each in changes)),
            facts={
                "changes": [
                    {name: change[name] for name in ("object", "field", "actual", "repairs")}
                    for change in changes[:_CHANGES_NAMED]
                ]
            },
            routers=(router.pk,),
            affected=of_lines(list(lines.values())),
        )


def vlan_losses(now: datetime) -> Iterator[AlarmCondition]:
    """Yield each line with an end that drops frames with the line's VLANs, or that may drop them.

    An end that was just rebuilt causes no alarm for some minutes, until it has received frames.
    """
    lossy = VllEnd.objects.filter(vlan_loss__isnull=False, vll__lifecycle__in=IN_SERVICE)
    ends = lossy.exclude(vlan_loss__state="rebuilt").select_related("vll__customer", "port")
    of_line: dict[Vll, list[tuple[VllEnd, dict[str, Any]]]] = {}
    for end in ends.order_by("vll", "side"):
        of_line.setdefault(end.vll, []).append((end, end.vlan_loss or {}))
    for line, losses in of_line.items():
        yield AlarmCondition(
            kind=Kind.VLAN_LOSS,
            object=f"line:{line.pk}",
            name=str(line),
            since=to_time(min(loss["since_ms"] for _end, loss in losses)),
            facts={
                "vll": str(line.pk),
                "ends": [
                    {"end": end.side, "state": loss["state"], "detail": loss["detail"]}
                    for end, loss in losses
                ],
            },
            routers=tuple(end.port.router_id for end, _loss in losses),
            affected=of_lines([line]),
        )


def trouble(now: datetime) -> Iterator[AlarmCondition]:
    reports = TroubleReport.objects.filter(closed_at__isnull=True).select_related("vll__customer")
    for report in reports.order_by("reported_at"):
        yield AlarmCondition(
            kind=Kind.TROUBLE,
            object=f"line:{report.vll_id}",
            name=str(report.vll),
            since=report.reported_at,
            facts={
                **{name: report.finding["verdict"][name] for name in ("code", "sentence")},
                "facts": report.finding.get("facts"),
                "note": report.note,
            },
            affected=of_lines([report.vll]),
        )


def unwatched_paths(now: datetime) -> Iterator[AlarmCondition]:
    yield from _watched_paths("unheard", troubled_routers(now))


def black_holes(now: datetime) -> Iterator[AlarmCondition]:
    holes = TunnelPath.objects.filter(in_use=True, black_hole_since__isnull=False)
    paths = list(holes.select_related("a_router", "z_router").order_by("verified_ip_mtu", "pk"))
    lines = [lines_beyond(path, path.verified_ip_mtu or 0) for path in paths]
    for path, affected in zip(paths, named(map(summed, lines)), strict=True):
        yield AlarmCondition(
            kind=Kind.BLACK_HOLE,
            object=f"path:{path.a_router_id}:{path.z_router_id}:{path.family}",
            name=f"{path.a_router} – {path.z_router}",
            since=path.black_hole_since,
            facts=black_hole_facts(path),
            routers=(path.a_router_id, path.z_router_id),
            affected=affected,
        )


def _watched_paths(state: str, troubled: Collection[int]) -> Iterator[AlarmCondition]:
    """Yield paths in ``state`` (down or unheard), each pair of routers once.

    Only paths with a session on both routers count (see is_path_down).
    """
    rows = rows_of(_WATCHED, {"state": state, "listening": sorted(LISTENING), "troubled": list(troubled)})
    kind = Kind.PATH_DOWN if state == "down" else Kind.PATH_UNHEARD
    for a, z, family, a_name, z_name, since in rows:
        yield AlarmCondition(
            kind=kind,
            object=f"path:{a}:{z}:{family}",
            name=f"{a_name} – {z_name}",
            since=since,
            facts={"why": "unheard"},
            routers=(a, z),
        )


_WATCHED = f"""
SELECT a.id, z.id, family(path.local), a.name, z.name, min(path.since)
FROM {ObservedPath._meta.db_table} AS path
JOIN {ObservedPath._meta.db_table} AS mirrored
  ON mirrored.local = path.remote AND mirrored.remote = path.local AND mirrored.state = ANY(%(listening)s)
JOIN inventory_router AS a ON a.id = least(path.router_id, mirrored.router_id)
JOIN inventory_router AS z ON z.id = greatest(path.router_id, mirrored.router_id)
WHERE path.state = %(state)s AND a.id <> ALL(%(troubled)s) AND z.id <> ALL(%(troubled)s)
GROUP BY a.id, z.id, family(path.local) ORDER BY a.name, z.name, 3
"""  # noqa: S608 - our own names


def _causes(query: str, **params: Any) -> list[_Cause]:
    rows: list[tuple[str, datetime | None, int, int, list[UUID]]] = rows_of(query, params)
    affected = named([row[2:] for row in rows])
    return [
        _Cause(object, object.partition(":")[0], object.split(":")[1:], since, whom)
        for (object, since, *_), whom in zip(rows, affected, strict=True)
    ]


def _ids(causes: Collection[_Cause], what: str) -> list[int]:
    return [int(cause.ids[0]) for cause in causes if cause.what == what]


def _router_names(causes: Collection[_Cause]) -> dict[int, str]:
    wanted = {int(each) for cause in causes if cause.what == "path" for each in cause.ids[:2]}
    wanted |= set(_ids(causes, "router"))
    return dict(Router.objects.filter(pk__in=wanted).values_list("pk", "name"))


def _line_name(cause: _Cause) -> str:
    return next((each["name"] for each in cause.affected.first), cause.ids[0])


# A failed test causes an alarm until a later test between the same routers passes, at most for this time.
FAILED_TESTS_FOR = timedelta(days=7)


def orders(now: datetime) -> Iterator[AlarmCondition]:
    every = Order.objects.select_related("vll__customer", "customer")
    overdue = every.exclude(state__in=TERMINAL_ORDER_STATES).filter(alarmed_at__isnull=False)
    for order in overdue.order_by("ordered_at"):
        yield _order(order, Kind.ORDER_OVERDUE, since=order.ordered_at)
    for order in queries.recently_failed(every, now=now).order_by("state_at"):
        yield _order(order, Kind.ORDER_FAILED, since=order.state_at)
    for order in every.filter(state=OrderState.PENDING_APPROVAL).order_by("ordered_at"):
        yield _order(order, Kind.ORDER_PENDING_APPROVAL, since=order.ordered_at)


def unconfirmed(now: datetime) -> Iterator[AlarmCondition]:
    """Yield lines whose order was ended by force, so that their resources stay reserved."""
    under_way = Order.objects.filter(vll=OuterRef("pk")).exclude(state__in=TERMINAL_ORDER_STATES)
    left = Vll.objects.filter(~Exists(under_way), wanted_present=False)
    left = left.exclude(lifecycle__in=TERMINAL_LIFECYCLES)
    for line in left.select_related("customer").order_by("created_at"):
        facts = {"customer": str(line.customer)}
        yield AlarmCondition(kind=Kind.UNCONFIRMED, object=f"line:{line.pk}", name=str(line), facts=facts)


def failed_tests(now: datetime) -> Iterator[AlarmCondition]:
    """Yield the newest failed test of each pair of routers. The direction does not matter."""
    newest: dict[tuple[str, ...], ActivationTest] = {}
    for test in _failed_tests(now).order_by("finished_at"):
        newest[tuple(sorted(test.conditions["routers"][side]["router"] for side in "az"))] = test
    for pair, test in newest.items():
        with in_english():
            sentence = activation_test_sentence(test)
        yield AlarmCondition(
            kind=Kind.TEST_FAILED,
            object="routers:" + ":".join(pair),
            name=" – ".join(test.conditions["routers"][side]["router"] for side in "az"),
            since=test.finished_at,
            facts={
                **activation_test_facts(test),
                "code": f"line-test-{test.reason}",
                "sentence": sentence,
                "line": str(test.vll_id),
                "test": str(test.pk),
            },
        )


def _failed_tests(now: datetime) -> QuerySet[ActivationTest]:
    """Return the failed tests that no later passed test makes obsolete. The later test must be between the
    same routers, with frames at least as large.
    """
    a, z = "conditions__routers__a__router", "conditions__routers__z__router"
    passed = ActivationTest.objects.filter(
        Q(**{a: OuterRef(a), z: OuterRef(z)}) | Q(**{a: OuterRef(z), z: OuterRef(a)}),
        state=ActivationTest.State.PASSED,
        finished_at__gt=OuterRef("finished_at"),
        frame__gte=OuterRef("frame"),
    )
    failed = ActivationTest.objects.filter(
        state=ActivationTest.State.FAILED, finished_at__gte=now - FAILED_TESTS_FOR
    )
    return failed.filter(~Exists(passed))


def _order(order: Order, kind: Kind, *, since: datetime) -> AlarmCondition:
    facts = {"customer": str(order.customer), "action": order.action, "state": order.state}
    return AlarmCondition(
        kind=kind,
        object=f"order:{order.pk}",
        name=str(order.vll),
        since=since,
        facts=facts | {"line": str(order.vll_id)},
        affected=of_lines([order.vll]),
    )
