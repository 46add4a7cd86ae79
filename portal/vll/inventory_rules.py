"""The rules of lines for changes of the declared network.

A change that affects lines is refused until the user accepts the effect. Only the NOC's declarations are
refused, because the NOC can reconsider them. Agents' observations describe the real state and are never
refused.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from uuid import UUID

from portal.accounts.models import Customer, User
from portal.allocation.bookings import bandwidth_forget
from portal.allocation.cpu_core_bookings import bookable_of, cores_suffice
from portal.allocation.packet_capacity import weights_of
from portal.events.announcements import announce
from portal.inventory.models import BackboneLink, Port, Router, Site
from portal.inventory.rules import Rules, Write, rules_register
from portal.underlay.current_topology import topology_lock, topology_when_all_report
from portal.vll.errors import LinesAffected, LoopbackInUse, UnderlayTableInUse
from portal.vll.lines_not_carried import carried_again, lines_off_the_path, lines_too_large_for, live_ends
from portal.vll.models import Reservation, Vll, VllEnd, VllTombstone
from portal.vll.operations.modify_line import labels_changed
from portal.vll.operations.state_compare_and_swap import lines_lock
from portal.vll.operations.tombstones import tombstones_abandon
from portal.vll.router_operations.actions import booked_lines_lock, lines_revalue
from portal.vll.states import TERMINAL_LIFECYCLES

_NAMED = 5


def line_rules_register() -> None:
    """Register the rules of lines for every kind of row of the inventory."""
    rules_register(Site, Rules())
    rules_register(Router, RouterRules())
    rules_register(BackboneLink, LinkRules())
    rules_register(Customer, CustomerRules())
    rules_register(Port, PortRules())


class RouterRules(Rules):
    @contextmanager
    def writing(self, write: Write) -> Iterator[None]:
        """Refuse to remove what lines use.

        Raises LoopbackInUse if tunnels end on an address that is removed. Raises UnderlayTableInUse if
        tunnels are in a table that is replaced. Raises CoresBelowBooked if fewer cores remain than are
        booked, unless the user accepts it.
        """
        if write.row.pk is None:
            yield
            return
        before = Router.objects.select_for_update(no_key=True).get(pk=write.row.pk)
        changes = write.changes
        for name in ("loopback4", "loopback6"):
            address = getattr(before, name)
            if name in changes and address is not None and changes[name] != address:
                _check_loopback(before, address, field=name)
        if changes.get("underlay_table", before.underlay_table) != before.underlay_table:
            _check_table(before)
        yield
        changed = write.row
        if "cpu" in changes and before.calibration is not None:
            booked_lines_lock(changed)
            lines_revalue(changed, before=weights_of(before))
        # All other changes of an overbooked router are permitted.
        is_weaker = bookable_of(changed) < bookable_of(before)
        if {"cores", "cpu"} & set(changes) and not write.accept_affected and is_weaker:
            cores_suffice(changed)

    def lock_for_removal(self, row: Router) -> None:
        topology_lock()
        lines_lock(set(VllTombstone.objects.filter(router=row).values_list("vll", flat=True)))

    def users(self, row: Router) -> list[str]:
        """Return the lines whose removal the router has not confirmed. A dead router need not confirm."""
        if row.dead_since is not None:
            return []
        left = VllTombstone.objects.filter(router=row).select_related("vll").order_by("pk")
        return [f"line {each.vll}" for each in left]

    def release(self, row: Router, *, now: datetime) -> dict[str, Any]:
        return {"lines": [str(vll) for vll in tombstones_abandon(row, now=now)]}


class LinkRules(Rules):
    @contextmanager
    def writing(self, write: Write) -> Iterator[None]:
        """Refuse a write after which the underlay would no longer carry lines. Raises LinesAffected."""
        link = write.row
        name = str(link) if link.pk is not None else f"{link.a_router} — {link.z_router}"
        with watched(name, accepted=write.accept_affected, user=write.user, now=write.now):
            yield


class CustomerRules(Rules):
    @contextmanager
    def writing(self, write: Write) -> Iterator[None]:
        """Send a new name to the routers that show it in the labels of the customer's lines."""
        if write.row.pk is None:
            yield
            return
        before = Customer.objects.select_for_update(no_key=True).get(pk=write.row.pk).name
        yield
        if write.row.name != before:
            labels_changed(Vll.objects.filter(customer=write.row))

    def users(self, row: Customer) -> list[str]:
        lines = Vll.objects.filter(customer=row).exclude(lifecycle__in=TERMINAL_LIFECYCLES)
        return [f"line {vll}" for vll in lines.order_by("-created_at")]


class PortRules(Rules):
    def lock(self, pk: int) -> None:
        """Lock the lines that end on the port; the caller has not locked the port yet."""
        lines_lock(set(live_ends().filter(port=pk).values_list("vll", flat=True)))

    @contextmanager
    def writing(self, write: Write) -> Iterator[None]:
        """Refuse a frame size that is too small for lines on the port. Raises LinesAffected."""
        if write.row.pk is None or "max_frame" not in write.changes:
            yield
            return
        self.lock(write.row.pk)
        before = lines_too_large_for(Port.objects.locked().get(pk=write.row.pk))
        yield
        affected = lines_too_large_for(write.row) - before
        _settle(affected, str(write.row), accepted=write.accept_affected, user=write.user, now=write.now)

    def users(self, row: Port) -> list[str]:
        ends = VllEnd.objects.filter(port=row).exclude(vll__lifecycle__in=TERMINAL_LIFECYCLES)
        lines = [f"line {end.vll}" for end in ends.select_related("vll").order_by("pk")]
        if lines or not row.booked_bps:
            return lines
        # No line ends here now. The bookings belong to reservations, or to removed ends that the router has
        # not confirmed. A dead router need not confirm.
        bookings = row.bookings.order_by("pk")
        if row.router.dead_since is not None:
            bookings = bookings.filter(owner__in=Reservation.objects.values("pk"))
        return [f"booking {booking.owner}" for booking in bookings]

    def retire(self, row: Port) -> None:
        bandwidth_forget(port=row)


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


@contextmanager
def watched(name: str, *, accepted: bool, user: User, now: datetime) -> Iterator[None]:
    """Refuse the changes of the block if the underlay would no longer carry some lines after them.

    If the user has ``accepted`` the effect, mark these lines instead. The check assumes that all agents
    report now. Obstacles that will end automatically, such as a silent agent, therefore do not count.
    """
    before = topology_when_all_report()
    yield
    off = lines_off_the_path(topology_when_all_report())
    # Usually the underlay carries all lines after the change; the state before it need not be checked.
    new = off - lines_off_the_path(before) if off else off
    # Lock all lines at once, in the order of ids. Lines come after routers and links, before ports (ADR 76).
    noted = Vll.objects.filter(not_carried_since__isnull=False).values_list("pk", flat=True)
    lines_lock({*new, *noted})
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
