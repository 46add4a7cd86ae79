"""Changes of the declared network. A change that affects lines is refused until the user accepts the effect.

Only the NOC's declarations are refused, because the NOC can reconsider them. Agents' observations describe
the real state and are never refused. Each function calls the function of the inventory's operations with the
same name and the suffix ``_unguarded``. Both have the same parameters. The errors of the called function are
raised too.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from portal.accounts.models import User
from portal.allocation.calibrated_weights import weights_of
from portal.allocation.cpu_core_bookings import bookable_of, cores_suffice
from portal.events.outbox import announce
from portal.inventory.models import BackboneLink, Port, Router
from portal.inventory.operations.links import link_change_unguarded, link_create_unguarded
from portal.inventory.operations.ports import port_change_unguarded
from portal.inventory.operations.routers import router_change_unguarded
from portal.underlay.topology_cache import topology_when_all_report
from portal.vll.calibration_rebooking import booked_lines_lock, lines_revalue
from portal.vll.errors import LinesAffected, LoopbackInUse, UnderlayTableInUse
from portal.vll.line_mtu_check import lines_off_the_path, lines_too_large_for, live_ends
from portal.vll.models import Vll
from portal.vll.operations import oper_status
from portal.vll.operations.lines_not_carried import carried_again

_NAMED = 5


@transaction.atomic
def port_change(
    *, port: Port, user: User, now: datetime, accept_affected: bool = False, **changes: Any
) -> Port:
    """Change a port.

    Raises LinesAffected if lines on the port send larger frames than the port accepts after the change.
    """
    if "max_frame" not in changes:
        return port_change_unguarded(port=port, user=user, now=now, **changes)
    lines_on_port_lock(port.pk)
    before = lines_too_large_for(Port.objects.locked().get(pk=port.pk))
    changed = port_change_unguarded(port=port, user=user, now=now, **changes)
    affected = lines_too_large_for(changed) - before
    _settle(affected, str(changed), accepted=accept_affected, user=user, now=now)
    return changed


def lines_on_port_lock(port_id: int) -> None:
    """Lock the lines that end on a port; the caller has not locked the port yet (ADR 76)."""
    oper_status.lines_lock(set(live_ends().filter(port=port_id).values_list("vll", flat=True)))


@transaction.atomic
def router_change(
    *, router: Router, user: User, now: datetime, accept_affected: bool = False, **changes: Any
) -> Router:
    """Change a router.

    Raises LoopbackInUse if tunnels end on an address that is removed. Raises UnderlayTableInUse if tunnels
    are in a table that is replaced. Raises CoresBelowBooked if fewer cores remain than are booked, unless
    ``accept_affected`` is True.
    """
    before = Router.objects.select_for_update(no_key=True).get(pk=router.pk)
    for name in ("loopback4", "loopback6"):
        address = getattr(before, name)
        if name in changes and address is not None and changes[name] != address:
            _check_loopback(before, address, field=name)
    if changes.get("underlay_table", before.underlay_table) != before.underlay_table:
        _check_table(before)
    changed = router_change_unguarded(router=router, user=user, now=now, **changes)
    if "cpu" in changes and before.calibration is not None:
        booked_lines_lock(changed)
        lines_revalue(changed, before=weights_of(before))
    if {"cores", "cpu"} & set(changes) and not accept_affected and _weaker(before, changed):
        cores_suffice(changed)
    return changed


@transaction.atomic
def link_change(
    *, link: BackboneLink, user: User, now: datetime, accept_affected: bool = False, **changes: Any
) -> BackboneLink:
    """Change a link. Raises LinesAffected if the underlay would no longer carry lines."""
    with watched(str(link), accepted=accept_affected, user=user, now=now):
        return link_change_unguarded(link=link, user=user, now=now, **changes)


@transaction.atomic
def link_create(
    *, a_router: Any, z_router: Any, user: User, now: datetime, accept_affected: bool = False, **facts: Any
) -> BackboneLink:
    """Create a link. Raises LinesAffected if the underlay would no longer carry lines.

    The error is possible because lines use a shorter new link even if its MTU is too small for them.
    """
    with watched(f"{a_router} — {z_router}", accepted=accept_affected, user=user, now=now):
        return link_create_unguarded(a_router=a_router, z_router=z_router, user=user, now=now, **facts)


def _check_loopback(router: Router, address: str, *, field: str) -> None:
    ends = live_ends().filter(port__router=router, tunnel_address=address)
    if example := ends.select_related("vll").order_by("pk").first():
        raise LoopbackInUse(
            router=router.name, address=address, count=ends.count(), example=str(example.vll), field=field
        )


def _check_table(router: Router) -> None:
    ends = live_ends().filter(port__router=router, vll__family__isnull=False)
    if example := ends.select_related("vll").order_by("pk").first():
        raise UnderlayTableInUse(
            router=router.name, table=router.underlay_table, count=ends.count(), example=str(example.vll)
        )


def _weaker(before: Router, after: Router) -> bool:
    """Return whether the change decreases the capacity that can be booked.

    All other changes of an overbooked router are permitted.
    """
    return bookable_of(after) < bookable_of(before)


@contextmanager
def watched(name: str, *, accepted: bool, user: User, now: datetime) -> Iterator[None]:
    """Refuse the changes made inside this context if the underlay would no longer carry some lines after
    them.

    If the user has ``accepted`` the effect, mark these lines instead. The check assumes that all agents
    report now. Obstacles that will end automatically, such as a silent agent, therefore do not count.
    """
    before = topology_when_all_report()
    yield
    off = lines_off_the_path(topology_when_all_report())
    # Usually the underlay carries all lines after the change, and the state before the change need not be
    # checked.
    new = off - lines_off_the_path(before) if off else off
    # Lock all lines at once, in the order of their ids. Lines come after routers and links and before ports
    # (ADR 76).
    noted = Vll.objects.filter(not_carried_since__isnull=False).values_list("pk", flat=True)
    oper_status.lines_lock({*new, *noted})
    _settle(new, name, accepted=accepted, user=user, now=now)
    carried_again(off=off, now=now)


def _settle(affected: set[UUID], name: str, *, accepted: bool, user: User, now: datetime) -> None:
    """Raise LinesAffected. If the user has ``accepted`` the effect, instead mark each affected line as no
    longer carried as sold.

    The caller has locked the lines.
    """
    if not affected:
        return
    lines = list(Vll.objects.filter(pk__in=affected).order_by("created_at", "pk"))
    if not accepted:
        raise LinesAffected(name=name, lines=[str(line) for line in lines[:_NAMED]], count=len(lines))
    Vll.objects.filter(pk__in=affected, not_carried_since__isnull=True).update(not_carried_since=now)
    for line in lines:
        announce(
            "vll.not_carried",
            now=now,
            customer_id=line.customer_id,
            vll_id=line.pk,
            actor=user.username,
            data={"because": name},
        )
