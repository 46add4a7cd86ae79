"""The health of lines in SQL, to count thousands of lines and to list the lines of one state.

The conditions are the same as in the table of ``portal.diagnosis.health``. Tests compare both.
"""

from collections.abc import Collection, Sequence
from typing import Any

from django.db.models import Case, CharField, Count, Exists, F, OuterRef, Q, QuerySet, Value, When

from portal.core.network.encapsulations import Transport
from portal.core.network.required_mtu import MtuPolicy, overhead
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

_MOVING = [
    state for state in OrderState if state not in {*TERMINAL_ORDER_STATES, OrderState.PENDING_APPROVAL}
]
# Pairs in the order of the table. The first condition that is true determines the state.
Conditions = Sequence[tuple[Q, HealthState]]


def with_health_state(rows: QuerySet[Vll]) -> QuerySet[Any]:
    """Annotate ``rows`` with ``health_state``. Lines that have ended are left out."""
    return _with_state(rows.exclude(lifecycle__in=TERMINAL_LIFECYCLES), _conditions())


def health_counts(rows: QuerySet[Vll]) -> dict[HealthState, int]:
    """Return the number of ``rows`` in each state, in the order of the states. States without lines are left
    out.
    """
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
    """Return the conditions of the table that apply to lines in service. A line that meets none of them is
    up.

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
    # Open orders are few, and this reads them once. A subquery per line would take longer the more lines
    # there are.
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
    """Return an SQL expression for the bytes that the tunnel adds to a frame of the line
    (``Vll.tunnel_packet``).
    """
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
