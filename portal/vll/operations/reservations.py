"""Reservations of VLANs, bandwidth and routers' cores before an order."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction

from portal.accounts import permissions
from portal.accounts.models import Customer, User
from portal.allocation.cpu_core_bookings import EndLoad, cores_book
from portal.allocation.packet_capacity import dearest, weights_of
from portal.core.db.each_row import each_row
from portal.events.outbox import announce
from portal.inventory.models import Port
from portal.vll.errors import (
    NotAllowedToOrder,
    ReservationRenewedOut,
    ReservationUnknown,
    TooManyReservations,
)
from portal.vll.line_spec import AllocatedEnd, EndSpec
from portal.vll.models import Reservation
from portal.vll.models.reservation import MAX_RENEWALS, MAX_RESERVATIONS
from portal.vll.operations.line_request_check import check_ports, core_loads
from portal.vll.operations.resource_leases import Leased, ends_lease, leases_release

LASTS = timedelta(seconds=900)


@transaction.atomic
def reservation_make(
    *, user: User, a_end: EndSpec, z_end: EndSpec, cir_bps: int, now: datetime
) -> Reservation:
    """Reserve these frames and ``cir_bps`` (bit/s) on both ports for 900 s.

    The reservation includes as much of the routers' cores as the most expensive transport would need. Raises
    the errors that an order raises about rate, ports and tags. Also raises VlanTaken, NoVlanFree, PortFull,
    RouterFull and TooManyReservations.
    """
    ends = {"a": a_end, "z": z_end}
    found = check_ports(user=user, ends=ends, cir_bps=cir_bps, lock=True)
    customer = found.owned()
    pk = uuid.uuid4()
    contents = ends_lease(ends=ends, ports=found.ports, cir_bps=cir_bps, owner=pk, leased=None, now=now)
    reservation = _in_a_free_slot(
        customer,
        pk=pk,
        reserved_by=user.username,
        created_at=now,
        expires_at=now + LASTS,
        cir_bps=cir_bps,
        ends={side: end.as_json() for side, end in contents.items()},
    )
    _cores_reserve(found.ports, cir_bps=cir_bps, owner=pk)
    _announce("hold.made", reservation, now=now, actor=user.username)
    return reservation


def _cores_reserve(ports: Mapping[str, Port], *, cir_bps: int, owner: uuid.UUID) -> None:
    """Book cores for the transport that needs most at each end: the order may choose any transport."""
    within_router = ports["a"].router_id == ports["z"].router_id
    ends: dict[str, EndLoad] = {}
    for side, port in ports.items():
        transport = dearest(within_router=within_router, weights=weights_of(port.router))
        ends |= core_loads({side: port}, cir_bps=cir_bps, transport=transport)
    cores_book(ends=ends, transport=transport, owner=owner)


@transaction.atomic
def reservation_renew(*, user: User, reservation: uuid.UUID, now: datetime) -> Reservation:
    """Extend a reservation to 900 s from now, at most three times.

    Raises ReservationUnknown, NotAllowedToOrder, ReservationRenewedOut.
    """
    row = _locked(user, reservation, now)
    if row.renewals >= MAX_RENEWALS:
        raise ReservationRenewedOut(maximum=MAX_RENEWALS)
    row.renewals += 1
    row.expires_at = now + LASTS
    row.save(update_fields=["renewals", "expires_at"])
    _announce("hold.renewed", row, now=now, actor=user.username)
    return row


@transaction.atomic
def reservation_release(*, user: User, reservation: uuid.UUID, now: datetime) -> None:
    """Release a reservation. Raises ReservationUnknown, NotAllowedToOrder."""
    _end(_locked(user, reservation, now), now=now, kind="hold.released", actor=user.username)


def reservations_expire(*, now: datetime) -> int:
    """Release expired reservations; return how many.

    Each reservation has its own transaction, so that no transaction locks the ports of several reservations.
    """
    expired = (
        Reservation.objects.filter(expires_at__lte=now).order_by("expires_at").values_list("pk", flat=True)
    )
    return sum(each_row(expired, lambda pk: _reservation_expire(pk, now), what="the expiry of a reservation"))


@transaction.atomic
def _reservation_expire(pk: uuid.UUID, now: datetime) -> int:
    # Skip a reservation that an order is using, or that a user is renewing, at this moment.
    row = Reservation.objects.filter(pk=pk, expires_at__lte=now).select_for_update(skip_locked=True).first()
    if row is None:
        return 0
    _end(row, now=now, kind="hold.expired", actor="")
    return 1


@dataclass(frozen=True, slots=True)
class Taken:
    """A reservation that an order takes over, locked until the end of the transaction."""

    row: Reservation

    @property
    def pk(self) -> uuid.UUID:
        return self.row.pk

    @property
    def leased(self) -> Leased:
        """Return the reserved leases."""
        return _leased(self.row)

    def end(self, *, now: datetime, kind: str, actor: str, vll_id: uuid.UUID) -> None:
        """Delete the reservation. The caller has already given its leases to another owner."""
        _announce(kind, self.row, now=now, actor=actor, vll_id=vll_id)
        self.row.delete()


def reservation_take(*, user: User, reservation: uuid.UUID, now: datetime) -> Taken:
    """Lock a reservation for an order. Raises ReservationUnknown, NotAllowedToOrder."""
    return Taken(_locked(user, reservation, now))


def reservation_read(*, user: User, reservation: uuid.UUID, now: datetime) -> Leased:
    """Return the leases that an order with this reservation would take over.

    Raises ReservationUnknown, NotAllowedToOrder.
    """
    return _leased(_found(Reservation.objects.all(), user, reservation, now))


def _leased(row: Reservation) -> Leased:
    ends = {side: AllocatedEnd.from_json(row.ends[side]) for side in "az"}
    return Leased(owner=row.pk, cir_bps=row.cir_bps, ends=ends)


def _locked(user: User, reservation: uuid.UUID, now: datetime) -> Reservation:
    return _found(Reservation.objects.select_for_update(of=("self",)), user, reservation, now)


def _found(rows: Any, user: User, reservation: uuid.UUID, now: datetime) -> Reservation:
    mine = rows.visible_to(user).filter(pk=reservation, expires_at__gt=now).select_related("customer")
    row: Reservation | None = mine.first()
    if row is None:
        raise ReservationUnknown(hold=str(reservation))
    if not permissions.may_order(user, row.customer):
        raise NotAllowedToOrder(customer=row.customer.name)
    return row


def _in_a_free_slot(customer: Customer, **columns: Any) -> Reservation:
    for slot in range(1, MAX_RESERVATIONS + 1):
        try:
            with transaction.atomic():
                reservation: Reservation = Reservation.objects.create(customer=customer, slot=slot, **columns)
                return reservation
        except IntegrityError as error:
            if "a_hold_has_its_own_slot" not in str(error):
                raise
    raise TooManyReservations(customer=customer.name, maximum=MAX_RESERVATIONS)


def _end(row: Reservation, *, now: datetime, kind: str, actor: str) -> None:
    leases_release(row.pk, now=now)
    _announce(kind, row, now=now, actor=actor)
    row.delete()


def _announce(
    kind: str, row: Reservation, *, now: datetime, actor: str, vll_id: uuid.UUID | None = None
) -> None:
    announce(
        kind,
        now=now,
        customer_id=row.customer_id,
        vll_id=vll_id,
        actor=actor,
        data={"hold": str(row.pk), "expires_at": row.expires_at.isoformat()},
    )
