"""Remove ports, routers and customers that lines may need.

An object with a history is retired: its row is kept, but nobody can use it any more.
"""

from datetime import datetime

from django.db import transaction
from django.db.models import ProtectedError

from portal.accounts.customer_retirement import customer_reopen, customer_retire
from portal.accounts.models import Customer, User
from portal.accounts.team import customer_lock
from portal.allocation.bandwidth_bookings import bandwidth_forget
from portal.events.outbox import announce
from portal.inventory.models import BackboneLink, Port, Router
from portal.inventory.operations.row_writes import in_use, row_remove
from portal.underlay.topology_cache import topology_lock
from portal.vll.models import Reservation, Vll, VllEnd, VllTombstone
from portal.vll.operations.oper_status import lines_lock
from portal.vll.operations.tombstones import tombstones_abandon
from portal.vll.states import TERMINAL_LIFECYCLES


@transaction.atomic
def port_remove(*, port: Port, user: User, now: datetime) -> None:
    """Remove a port, or retire it if it has a history.

    Raises InUse while a line or a reservation needs the port. Orders lock their ports, so no order can start
    to use the port meanwhile.
    """
    locked = Port.objects.select_for_update(of=("self",)).select_related("router").get(pk=port.pk)
    if users := _users_of(locked):
        raise in_use("port", str(locked), users)
    try:
        with transaction.atomic():
            row_remove(locked, kind="port", user=user, now=now)
    except ProtectedError:
        bandwidth_forget(port=locked)
        Port.objects.filter(pk=port.pk).update(customer=None, retired_at=now)
        data = {"id": port.pk, "name": str(locked)}
        announce("port.retired", now=now, actor=user.username, router_id=locked.router_id, data=data)


@transaction.atomic
def router_remove(*, router: Router, user: User, now: datetime) -> None:
    """Remove a router, or retire it if it has a history. A retired router's certificates are revoked.

    Raises InUse while the router has ports or links, and while it has not confirmed the removal of a line. A
    dead router needs no confirmation: the leases of its lines are released.
    """
    # Lock the router, the topology and the lines in this order (ADR 76). Lock the router's key last. An order
    # that has locked a line needs this key when it commits, because PostgreSQL then checks foreign keys. A
    # lock of the key before the lines could therefore cause a deadlock.
    locked = Router.objects.select_for_update(no_key=True).get(pk=router.pk)
    topology_lock()
    lines_lock(set(VllTombstone.objects.filter(router=locked).values_list("vll", flat=True)))
    locked = Router.objects.select_for_update().get(pk=router.pk)
    ports = Port.objects.filter(router=locked, retired_at__isnull=True).select_related("router")
    links = BackboneLink.objects.filter(a_router=locked) | BackboneLink.objects.filter(z_router=locked)
    users = [f"port {port}" for port in ports.order_by("interface")]
    users += [f"link {link}" for link in links.select_related("a_router", "z_router").order_by("pk")]
    if locked.dead_since is None:
        left = VllTombstone.objects.filter(router=locked).select_related("vll").order_by("pk")
        users += [f"line {each.vll}" for each in left]
    if users:
        raise in_use("router", locked.name, users)
    given_up = tombstones_abandon(locked, now=now)
    try:
        with transaction.atomic():
            row_remove(locked, kind="router", user=user, now=now)
    except ProtectedError:
        Router.objects.filter(pk=router.pk).update(
            agent_url="", loopback4=None, loopback6=None, retired_at=now
        )
        router.certificates.filter(revoked_at__isnull=True).update(revoked_at=now)
        data = {"id": router.pk, "name": locked.name, "lines": [str(vll) for vll in given_up]}
        announce("router.retired", now=now, actor=user.username, router_id=router.pk, data=data)


@transaction.atomic
def customer_remove(*, customer: Customer, user: User, now: datetime) -> None:
    """Remove a customer, or retire it if it has a history. Raises InUse while it has ports or unfinished
    lines.

    Removing a retired customer again changes nothing.
    """
    locked = customer_lock(customer)
    if locked.retired_at is not None:
        return
    lines = Vll.objects.filter(customer=locked).exclude(lifecycle__in=TERMINAL_LIFECYCLES)
    users = [f"port {port}" for port in Port.objects.filter(customer=locked).select_related("router")]
    users += [f"line {vll}" for vll in lines.order_by("-created_at")]
    if users:
        raise in_use("customer", locked.name, users)
    try:
        with transaction.atomic():
            row_remove(locked, kind="customer", user=user, now=now)
    except ProtectedError:
        customer_retire(customer=customer, now=now)
        data = {"id": customer.pk, "name": customer.name}
        announce("customer.retired", now=now, actor=user.username, customer_id=customer.pk, data=data)


@transaction.atomic
def customer_return(*, customer: Customer, user: User, now: datetime) -> None:
    """Undo a retirement, so that the customer can again get ports and place orders. Does nothing for an
    active customer.
    """
    locked = Customer.objects.select_for_update().get(pk=customer.pk)
    if locked.retired_at is None:
        return
    customer_reopen(customer=locked, now=now)
    data = {"id": customer.pk, "name": customer.name}
    announce("customer.reopened", now=now, actor=user.username, customer_id=customer.pk, data=data)


def _users_of(port: Port) -> list[str]:
    ends = VllEnd.objects.filter(port=port).exclude(vll__lifecycle__in=TERMINAL_LIFECYCLES)
    lines = [f"line {end.vll}" for end in ends.select_related("vll").order_by("pk")]
    if lines or not port.booked_bps:
        return lines
    # No line ends here now. The bookings belong to reservations, or to removed ends that the router has not
    # confirmed. A dead router need not confirm.
    bookings = port.bookings.order_by("pk")
    if port.router.dead_since is not None:
        bookings = bookings.filter(owner__in=Reservation.objects.values("pk"))
    return [f"booking {booking.owner}" for booking in bookings]
