"""Reservations of VLANs, bandwidth and routers' cores before an order."""

import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction

from portal.accounts.models import Customer, User
from portal.allocation.cpu_core_bookings import EndLoad, cores_book
from portal.allocation.packet_capacity import dearest, weights_of
from portal.core.background_work import each_row
from portal.events.announcements import announce
from portal.inventory.models import Port
from portal.vll.errors import ReservationRenewedOut, TooManyReservations
from portal.vll.line_allocation import core_loads, ends_lease, leases_release
from portal.vll.line_rules import Check, check_ports
from portal.vll.line_spec import EndSpec
from portal.vll.models import Reservation
from portal.vll.models.order import MAX_RENEWALS, MAX_RESERVATIONS
from portal.vll.quote import reservation_find

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
    check, pk = Check(lock=True), uuid.uuid4()
    check_ports(check, user=user, ends=ends, cir_bps=cir_bps)
    contents = ends_lease(check, ends=ends, cir_bps=cir_bps, owner=pk, current=None, now=now)
    reservation = _in_a_free_slot(
        check.owner,
        pk=pk,
        reserved_by=user.username,
        created_at=now,
        expires_at=now + LASTS,
        cir_bps=cir_bps,
        ends={side: end.as_json() for side, end in contents.items()},
    )
    _cores_reserve(check.ports, cir_bps=cir_bps, owner=pk)
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
    row = reservation_find(user, reservation, now=now, lock=True)
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
    row = reservation_find(user, reservation, now=now, lock=True)
    leases_release(row.pk, now=now)
    reservation_end(row, now=now, kind="hold.released", actor=user.username)


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
    leases_release(row.pk, now=now)
    reservation_end(row, now=now, kind="hold.expired", actor="")
    return 1


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


def reservation_end(
    row: Reservation, *, now: datetime, kind: str, actor: str, vll_id: uuid.UUID | None = None
) -> None:
    """Announce the end of a reservation and delete it.

    The caller has released its leases, or given them to the line ``vll_id``.
    """
    _announce(kind, row, now=now, actor=actor, vll_id=vll_id)
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
