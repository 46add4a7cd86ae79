"""The health of each line for people: one state from several independent facts, with cause and start time.

The health is computed each time and not stored. The first row that applies decides:

* ``removing``: the removal is ordered (including the cooling-off period)
* ``setting_up``: the first order has not ended
* ``suspended``: the line should carry no traffic, and no order is about to change that
* ``down``: the op-status is down
* ``changing``: an order is changing or testing the line
* ``unknown``: the routers have not reported on the line recently
* ``degraded``: the configuration of a router differs from the order, the path loses frames, the path does not
  carry the line's largest frames, or a port is too slow for its bookings
* ``up``: none of these
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import models
from django.db.models import (
    BigIntegerField,
    Case,
    CharField,
    Count,
    Exists,
    F,
    OuterRef,
    Q,
    QuerySet,
    UUIDField,
    Value,
    When,
)
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from portal.core.db.row_conditions import is_one_of
from portal.core.db.statements import CompiledQuery
from portal.core.network.encapsulations import Transport
from portal.core.network.path_bfd import is_path_down
from portal.core.network.required_mtu import MtuPolicy, overhead
from portal.core.reader_texts import moment_text
from portal.diagnosis.checks import Finding
from portal.diagnosis.diagnosis import broken_sentence
from portal.inventory.interfaces import overbooked_ports
from portal.inventory.models import ObservedRouter, Port
from portal.vll.line_revision import applied_cir_bps
from portal.vll.models import Order, TunnelPath, Vll, VllEnd
from portal.vll.queries import in_service
from portal.vll.states import (
    TERMINAL_LIFECYCLES,
    TERMINAL_ORDER_STATES,
    Lifecycle,
    OperStatus,
    OrderAction,
    OrderState,
)


class HealthState(models.TextChoices):
    UP = "up", gettext_lazy("Up")
    DEGRADED = "degraded", gettext_lazy("Degraded")
    DOWN = "down", gettext_lazy("Down")
    SUSPENDED = "suspended", gettext_lazy("Suspended")
    SETTING_UP = "setting_up", gettext_lazy("Setting up")
    CHANGING = "changing", gettext_lazy("Changing")
    REMOVING = "removing", gettext_lazy("Removing")
    UNKNOWN = "unknown", gettext_lazy("Unknown")


@dataclass(frozen=True, slots=True)
class Health:
    """The health of one line. ``cause`` is a sentence or "". ``since`` is None if the start is unknown."""

    state: HealthState
    cause: str = ""
    since: datetime | None = None


def with_health(lines: list[Vll], *, troubled: Collection[TunnelPath] | None = None) -> list[Vll]:
    """Attach the health to each line and return the lines. ``known_health`` then needs no SQL statement.

    ``troubled``: all rows of ``troubled_paths``, if the caller has already read them.
    """
    for line, health in zip(lines, healths_of(lines, troubled=troubled).values(), strict=True):
        vars(line)["health"] = health
    return lines


def with_applied_rate(line: Vll, newest: Order | None) -> Vll:
    """Attach ``applied_cir_bps``, the rate that the routers have now, to the line. Return the line."""
    vars(line)["applied_cir_bps"] = applied_cir_bps(line, newest)
    return line


def with_order(line: Vll, order: Order) -> Vll:
    """Attach the health that follows from the line's newest order, and return the line.

    If another fact decides the health, nothing is attached. For pages that have already read the order.
    """
    decides = order.state != OrderState.PENDING_APPROVAL or line.lifecycle == Lifecycle.PENDING_ACTIVE
    if decides and not order.is_terminal:
        vars(line)["health"] = health_of(line, order=order, path=None)
    return line


def known_health(line: Vll) -> Health | None:
    """Return the health that is attached to the line. If no health is attached, compute the health now."""
    if "health" not in vars(line):
        with_health([line])
    found: Health | None = vars(line)["health"]
    return found


def healths_of(
    lines: Sequence[Vll], *, troubled: Collection[TunnelPath] | None = None
) -> dict[UUID, Health | None]:
    """Return the health of each line, by id; None for a line that has ended.

    This needs three SQL statements for any number of lines, or two if the caller passes ``troubled``, all
    rows of ``troubled_paths``. The caller must have prefetched the ends with ``port.router.observed``.
    """
    living = [line.pk for line in lines if line.lifecycle not in TERMINAL_LIFECYCLES]
    orders = {order.vll_id: order for order in _ORDERS_NOT_ENDED(living)} if living else {}
    ports = [end.port for line in lines if _is_active(line) for end in line.ends.all()]
    if troubled is None:
        troubled = _PATHS_FROM(list({port.router_id for port in ports})) if ports else ()
    paths = {(path.a_router_id, path.z_router_id, path.family): path for path in troubled}
    numbers = list({port.pk for port in ports})
    overbooked = {port.pk for port in _OVERBOOKED_AMONG(numbers)} if numbers else set[int]()
    for line in lines:
        with_applied_rate(line, orders.get(line.pk))
    return {
        line.pk: health_of(line, order=orders.get(line.pk), path=_of(line, paths), overbooked=overbooked)
        for line in lines
    }


def health_of(
    line: Vll, *, order: Order | None, path: TunnelPath | None, overbooked: Collection[int] = ()
) -> Health | None:
    """Return the line's health, or None if the line has ended.

    * ``order``: the line's open order.
    * ``path``: the path of the line's tunnel if it is one of ``troubled_paths``, else None.
    * ``overbooked``: the ids of ports that are too slow for their bookings.
    """
    if line.lifecycle in TERMINAL_LIFECYCLES:
        return None
    if line.lifecycle == Lifecycle.PENDING_TERMINATE:
        return _removing(line, order)
    if line.lifecycle == Lifecycle.PENDING_ACTIVE:
        return _setting_up(order)
    moving = order is not None and order.state != OrderState.PENDING_APPROVAL
    if line.lifecycle == Lifecycle.SUSPENDED and not moving:
        return Health(HealthState.SUSPENDED, _sentence(Finding.SUSPENDED), line.in_sync_since)
    if line.lifecycle == Lifecycle.ACTIVE and line.oper_status == OperStatus.DOWN:
        return Health(HealthState.DOWN, _why_down(line), line.oper_since)
    if order is not None and moving:
        test = order.action == OrderAction.TEST
        cause = _sentence(Finding.BEING_TESTED if test else Finding.ORDER_UNDER_WAY)
        return Health(HealthState.CHANGING, cause, order.ordered_at)
    if line.oper_status == OperStatus.UNKNOWN:
        return Health(
            HealthState.UNKNOWN, _("Its routers have not reported on it recently."), line.oper_since
        )
    if not line.in_sync:
        return Health(HealthState.DEGRADED, _why_not_as_wanted(line), line.in_sync_since)
    if path is not None and (lost := _lost_on(path, line)):
        return Health(HealthState.DEGRADED, _sentence(lost), path.black_hole_since or path.probed_at)
    if line.not_carried_since is not None and line.lifecycle == Lifecycle.ACTIVE:
        return Health(HealthState.DEGRADED, _sentence(Finding.NOT_CARRIED), line.not_carried_since)
    if line.lifecycle == Lifecycle.ACTIVE and overbooked:
        ends = sorted(line.ends.all(), key=lambda end: end.side)
        if slow := next((end for end in ends if end.port_id in overbooked), None):
            return Health(HealthState.DEGRADED, _sentence(Finding.PORT_SLOW, slow))
    known = [at for at in (line.oper_since, line.in_sync_since) if at is not None]
    return Health(HealthState.UP, since=max(known, default=None))


def _removing(line: Vll, order: Order | None) -> Health:
    since = order.ordered_at if order is not None else line.in_sync_since
    if line.decommission_at is not None and line.wanted_present:
        text = _("Its removal is ordered and can be undone until {until}.")
        cause = text.format(until=moment_text(line.decommission_at))
        return Health(HealthState.REMOVING, cause, since)
    return Health(HealthState.REMOVING, _("It is being removed from its routers."), since)


def _setting_up(order: Order | None) -> Health:
    if order is None:
        return Health(HealthState.SETTING_UP)
    match order.state:
        case OrderState.PENDING_APPROVAL:
            cause = _("It is waiting for the NOC's approval.")
        case OrderState.PENDING_CANCELLATION:
            cause = _("Its order was cancelled, and what was set up is being removed.")
        case _ if order.failure:
            cause = _("Its order failed, and what was set up is being removed.")
        case _:
            cause = _("It is being set up and tested.")
    return Health(HealthState.SETTING_UP, cause, order.ordered_at)


def _why_down(line: Vll) -> str:
    """Return why a line is down, and which ports are shut down because of that, as in the diagnosis."""
    ends = sorted(line.ends.all(), key=lambda end: end.side)
    done = [_sentence(Finding.LINK_SHUT_DOWN, end) for end in ends if end.shut_down]
    dead = next((end for end in ends if done and end.port.router.dead_since), None)
    cause = _cause_of_down(ends) if dead is None else _sentence(Finding.ROUTER_DEAD, dead)
    return " ".join([cause, *done])


def _cause_of_down(ends: Sequence[VllEnd]) -> str:
    for end in ends:
        seen = _observed(end)
        if seen is not None and (not seen.vpp_connected or seen.vpp_hangs):
            return _sentence(Finding.VPP_DOWN, end)
    for end in ends:
        if end.link_up is False and not end.shut_down:
            return _sentence(Finding.PORT_DOWN, end)
    states = [end.path_state for end in ends]
    if is_path_down(states) or any(end.reachable is False for end in ends):
        return _sentence(Finding.PATH_DOWN)
    # No other cause was found. The router has been silent for so long that the line counts as down.
    return _sentence(Finding.ROUTER_SILENT, min(ends, key=_last_reported))


def _observed(end: VllEnd) -> ObservedRouter | None:
    return getattr(end.port.router, "observed", None)


def _last_reported(end: VllEnd) -> float:
    seen = _observed(end)
    return seen.reported_at.timestamp() if seen is not None else 0


def _why_not_as_wanted(line: Vll) -> str:
    ends = sorted(line.ends.all(), key=lambda end: end.side)
    differs = (end for end in ends if end.status != VllEnd.Status.VERIFIED or end.drift)
    return _sentence(Finding.NOT_AS_WANTED, next(differs, ends[0]))


def _sentence(finding: Finding, end: VllEnd | None = None) -> str:
    if end is None:
        return broken_sentence(finding)
    return broken_sentence(finding, side=end.side, router=end.port.router.name, port=end.port.interface)


def _lost_on(path: TunnelPath, line: Vll) -> Finding | None:
    """Return the loss on the path, else None. A loss of large frames only affects lines with such frames."""
    if path.black_hole_since is None:
        return Finding.PATH_LOSES if path.finding else None
    return Finding.LARGE_FRAMES_LOST if line.tunnel_packet > (path.verified_ip_mtu or 0) else None


def _orders_not_ended(lines: list[UUID]) -> QuerySet[Order]:
    return Order.objects.filter(is_one_of("vll", lines, UUIDField())).exclude(state__in=TERMINAL_ORDER_STATES)


def _paths_from(routers: list[int]) -> QuerySet[TunnelPath]:
    return troubled_paths().filter(is_one_of("a_router", routers, BigIntegerField()))


def _overbooked_among(ports: list[int]) -> QuerySet[Port]:
    return overbooked_ports(Port.objects.only("pk").filter(is_one_of("pk", ports, BigIntegerField())))


# Every list of lines runs these three statements.
_ORDERS_NOT_ENDED = CompiledQuery[Order](_orders_not_ended)
_PATHS_FROM = CompiledQuery[TunnelPath](_paths_from)
_OVERBOOKED_AMONG = CompiledQuery[Port](_overbooked_among)


def _is_active(line: Vll) -> bool:
    return line.lifecycle == Lifecycle.ACTIVE


def troubled_paths() -> QuerySet[TunnelPath]:
    """Return all paths in use that have a black hole, or that lost frames in the last probe."""
    return TunnelPath.objects.filter(Q(black_hole_since__isnull=False) | ~Q(finding=""), in_use=True)


def _of(line: Vll, paths: dict[tuple[int, int, int], TunnelPath]) -> TunnelPath | None:
    """Return the path of the line's tunnel if the line is in service and the path is in
    ``paths``, else None.
    """
    if not paths or line.family is None or not _is_active(line):
        return None
    a, z = sorted(end.port.router_id for end in line.ends.all())
    return paths.get((a, z, line.family))


_MOVING = [
    state for state in OrderState if state not in {*TERMINAL_ORDER_STATES, OrderState.PENDING_APPROVAL}
]
# Pairs in the order of the table. The first condition that is true determines the state.
Conditions = Sequence[tuple[Q, HealthState]]


def with_health_state(rows: QuerySet[Vll]) -> QuerySet[Any]:
    """Annotate ``rows`` with ``health_state``. Lines that have ended are left out."""
    return _with_state(rows.exclude(lifecycle__in=TERMINAL_LIFECYCLES), _conditions())


def health_counts(rows: QuerySet[Vll]) -> dict[HealthState, int]:
    """Return the number of ``rows`` in each state that has lines, in the order of the states."""
    return _counts(rows.exclude(lifecycle__in=TERMINAL_LIFECYCLES), _conditions())


def in_service_counts(
    rows: QuerySet[Vll], *, troubled: Collection[TunnelPath] | None = None
) -> dict[HealthState, int]:
    """Count the lines in service among ``rows`` by their state of health.

    The sum of the numbers is the number of lines in service. All pages that show how many lines are in
    service or up use this function. It reads only the lines that are not up: they are few, and each condition
    has an index. ``troubled``: all rows of ``troubled_paths``, if the caller has already read them.
    """
    not_up = _not_up(troubled_paths().exists() if troubled is None else bool(troubled))
    lines = in_service(rows).order_by()
    first, *others = (lines.filter(condition).values("pk") for condition, _ in not_up)
    counts = _counts(lines.filter(pk__in=first.union(*others)), not_up)
    up = lines.count() - sum(counts.values())
    # ``up`` can be negative if a line changes between the two statements. Then leave the state out.
    return {HealthState.UP: up, **counts} if up > 0 else counts


def _counts(rows: QuerySet[Vll], conditions: Conditions) -> dict[HealthState, int]:
    counted = _with_state(rows, conditions).order_by().values_list("health_state").annotate(Count("pk"))
    found = dict(counted)
    return {state: found[state.value] for state in HealthState if state.value in found}


def _with_state(rows: QuerySet[Vll], conditions: Conditions) -> QuerySet[Any]:
    whens = [When(condition, then=Value(state.value)) for condition, state in conditions]
    state = Case(*whens, default=Value(HealthState.UP.value), output_field=CharField())
    annotated: QuerySet[Any] = rows.annotate(health_state=state)
    return annotated


def _conditions() -> Conditions:
    """Return the conditions of the table, for all lines that have not ended."""
    return [
        (Q(lifecycle=Lifecycle.PENDING_TERMINATE), HealthState.REMOVING),
        (Q(lifecycle=Lifecycle.PENDING_ACTIVE), HealthState.SETTING_UP),
        (Q(lifecycle=Lifecycle.SUSPENDED) & ~_is_moving(), HealthState.SUSPENDED),
        *_not_up(troubled_paths().exists()),
    ]


def _not_up(has_troubled_paths: bool) -> Conditions:
    """Return the table's conditions for lines in service. A line that meets none of them is up.

    Without troubled paths, the condition on paths is left out, so that PostgreSQL need not plan its joins.
    """
    on_overbooked_ports = VllEnd.objects.filter(port__in=overbooked_ports(Port.objects.all())).values("vll")
    table = [
        (Q(lifecycle=Lifecycle.ACTIVE, oper_status=OperStatus.DOWN), HealthState.DOWN),
        (_is_moving(), HealthState.CHANGING),
        (Q(oper_status=OperStatus.UNKNOWN), HealthState.UNKNOWN),
        (Q(in_sync=False), HealthState.DEGRADED),
        (Q(lifecycle=Lifecycle.ACTIVE, not_carried_since__isnull=False), HealthState.DEGRADED),
        (Q(lifecycle=Lifecycle.ACTIVE, pk__in=on_overbooked_ports), HealthState.DEGRADED),
    ]
    if has_troubled_paths:
        table.append((Q(lifecycle=Lifecycle.ACTIVE, pk__in=_lines_losing_frames()), HealthState.DEGRADED))
    return table


def _is_moving() -> Q:
    # Open orders are few, and this reads them once. A subquery per line would get slower with more lines.
    return Q(pk__in=Order.objects.filter(state__in=_MOVING).values("vll"))


def _lines_losing_frames() -> QuerySet[Any, Any]:
    """Return the ids of lines whose path loses frames of the line's size."""
    path = troubled_paths().filter(
        Q(black_hole_since=None) | Q(verified_ip_mtu__lt=OuterRef("packet")),
        a_router=OuterRef("port__router"),
        z_router=OuterRef("vll__ends__port__router"),
        family=OuterRef("vll__family"),
    )
    ends = VllEnd.objects.annotate(packet=F("vll__frame") + _overhead()).filter(Exists(path))
    return ends.values("vll")


def _overhead() -> Case:
    """Return SQL for the bytes that the tunnel adds to a frame of the line (``Vll.tunnel_packet``)."""
    whens = [
        When(
            vll__encapsulation=transport.encapsulation,
            vll__family=transport.family,
            vll__gre_key__isnull=not gre_key,
            then=overhead(transport, MtuPolicy.EXACT, gre_key=gre_key),
        )
        for transport in Transport
        if transport.family is not None
        for gre_key in (True, False)
    ]
    return Case(*whens, default=0)
