"""The health of lines in SQL: to count thousands of lines, and to list those of one state.

The same table as ``portal.diagnosis.health``, row by row; tests compare the two.
"""

from collections.abc import Collection, Sequence
from typing import Any

from django.db.models import Case, CharField, Count, Exists, F, OuterRef, Q, QuerySet, Value, When

from portal.core.encapsulations import Transport
from portal.core.required_mtu import MtuPolicy, overhead
from portal.diagnosis.health import HealthState, troubled_paths
from portal.inventory.models import Port
from portal.inventory.port_link_state import overbooked_ports
from portal.vll.models import Order, TunnelPath, Vll, VllEnd
from portal.vll.queries import in_service
from portal.vll.states import (
    TERMINAL_LIFECYCLES,
    TERMINAL_ORDER_STATES,
    Lifecycle,
    OperStatus,
    OrderState,
)

_MOVING = [state for state in OrderState if state not in {*TERMINAL_ORDER_STATES, OrderState.HELD}]
# In the order of the table: the first condition that is true decides.
Conditions = Sequence[tuple[Q, HealthState]]


def with_health_state(rows: QuerySet[Vll]) -> QuerySet[Any]:
    """Return ``rows`` with ``health_state``; lines that have ended are left out."""
    return _with_state(rows.exclude(lifecycle__in=TERMINAL_LIFECYCLES), _conditions())


def health_counts(rows: QuerySet[Vll]) -> dict[HealthState, int]:
    """Return how many of ``rows`` are in each state, in the order of the states; no zeros."""
    return _counts(rows.exclude(lifecycle__in=TERMINAL_LIFECYCLES), _conditions())


def in_service_counts(
    rows: QuerySet[Vll], *, troubled: Collection[TunnelPath] | None = None
) -> dict[HealthState, int]:
    """Return how many lines of ``rows`` that are in service have each health. Their sum is all of them.

    Every page that says how many lines are in service, or up, counts with this function. It reads only the
    lines that are not up: an index finds those of each condition, and they are few. ``troubled``: all rows of
    ``troubled_paths``, if the caller has read them.
    """
    not_up = _not_up(troubled_paths().exists() if troubled is None else bool(troubled))
    lines = in_service(rows).order_by()
    first, *others = (lines.filter(condition).values("pk") for condition, _ in not_up)
    counts = _counts(lines.filter(pk__in=first.union(*others)), not_up)
    up = lines.count() - sum(counts.values())
    # A line can come into service between the two statements.
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
    """Return the conditions of the table for all lines that have not ended."""
    return [
        (Q(lifecycle=Lifecycle.PENDING_TERMINATE), HealthState.REMOVING),
        (Q(lifecycle=Lifecycle.PENDING_ACTIVE), HealthState.SETTING_UP),
        (Q(lifecycle=Lifecycle.SUSPENDED) & ~_is_moving(), HealthState.SUSPENDED),
        *_not_up(troubled_paths().exists()),
    ]


def _not_up(has_troubled_paths: bool) -> Conditions:
    """Return why lines in service are not up.

    Without troubled paths, PostgreSQL need not plan the joins that find the lines on them.
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
    # Open orders are few and read once; reading the open order of each line takes longer with each line.
    return Q(pk__in=Order.objects.filter(state__in=_MOVING).values("vll"))


def _lines_losing_frames() -> QuerySet[Any, Any]:
    """Return the ids of the lines whose tunnel takes a path that loses their frames."""
    path = troubled_paths().filter(
        Q(black_hole_since=None) | Q(verified_ip_mtu__lt=OuterRef("packet")),
        a_router=OuterRef("port__router"),
        z_router=OuterRef("vll__ends__port__router"),
        family=OuterRef("vll__family"),
    )
    ends = VllEnd.objects.annotate(packet=F("vll__frame") + _overhead()).filter(Exists(path))
    return ends.values("vll")


def _overhead() -> Case:
    """Return the bytes that the tunnel adds to the largest frame of an end's line (``Vll.tunnel_packet``)."""
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
