"""The health of lines as the database finds it: to count thousands, and to list those of one state.

The same table as ``portal.diagnosis.health``, row by row; a test holds the two against each other.
"""

from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Case, CharField, Count, Q, QuerySet, Value, When

from portal.core.encapsulations import Transport
from portal.core.required_mtu import MtuPolicy, overhead
from portal.diagnosis.health import HealthState, troubled_paths
from portal.vll.models import Order, TunnelPath, Vll, VllEnd
from portal.vll.states import (
    TERMINAL_LIFECYCLES,
    TERMINAL_ORDER_STATES,
    Lifecycle,
    OperStatus,
    OrderState,
)

_MOVING = [state for state in OrderState if state not in {*TERMINAL_ORDER_STATES, OrderState.HELD}]


def with_health_state(rows: QuerySet[Vll]) -> QuerySet[Any]:
    """``rows`` with ``health_state``; those of lines that have ended are left out."""
    # Open orders are few and read once; looking for one of each line takes longer with each line.
    moving = Q(pk__in=Order.objects.filter(state__in=_MOVING).values("vll"))
    table = [
        (Q(lifecycle=Lifecycle.PENDING_TERMINATE), HealthState.REMOVING),
        (Q(lifecycle=Lifecycle.PENDING_ACTIVE), HealthState.SETTING_UP),
        (Q(lifecycle=Lifecycle.SUSPENDED) & ~moving, HealthState.SUSPENDED),
        (Q(lifecycle=Lifecycle.ACTIVE, oper_status=OperStatus.DOWN), HealthState.DOWN),
        (moving, HealthState.CHANGING),
        (Q(oper_status=OperStatus.UNKNOWN), HealthState.UNKNOWN),
        (Q(in_sync=False), HealthState.DEGRADED),
    ]
    paths = troubled_paths()
    if paths:
        table.append(
            (Q(lifecycle=Lifecycle.ACTIVE) & reduce(or_, map(_loses_on, paths)), HealthState.DEGRADED)
        )
    table.append((Q(lifecycle=Lifecycle.ACTIVE, not_carried_since__isnull=False), HealthState.DEGRADED))
    whens = [When(condition, then=Value(state.value)) for condition, state in table]
    state = Case(*whens, default=Value(HealthState.UP.value), output_field=CharField())
    return rows.exclude(lifecycle__in=TERMINAL_LIFECYCLES).annotate(health_state=state)


def health_counts(rows: QuerySet[Vll]) -> dict[HealthState, int]:
    """How many of ``rows`` are in each state, in the order of the states; those without any are left out."""
    counted = with_health_state(rows).order_by().values_list("health_state").annotate(Count("pk"))
    found = dict(counted)
    return {state: found[state.value] for state in HealthState if state.value in found}


def _loses_on(path: TunnelPath) -> Q:
    """The lines between the path's routers that lose frames on it."""
    there = [VllEnd.objects.filter(port__router=router) for router in (path.a_router_id, path.z_router_id)]
    on_it = Q(family=path.family, pk__in=there[0].values("vll")) & Q(pk__in=there[1].values("vll"))
    return on_it if path.black_hole_since is None else on_it & _is_too_large(path)


def _is_too_large(path: TunnelPath) -> Q:
    """The lines whose largest packets a black hole loses: with their tunnel they are beyond what passes."""
    beyond = Q(pk__in=())
    for transport in Transport:
        for gre_key in (True, False):
            room = (path.proven_ip_mtu or 0) - overhead(transport, MtuPolicy.EXACT, gre_key=gre_key)
            of_it = Q(encapsulation=transport.encapsulation, gre_key__isnull=not gre_key, frame__gt=room)
            if transport.family == path.family:
                beyond |= of_it
    return beyond
