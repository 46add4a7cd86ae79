"""Holds: short reservations of VLANs, bandwidth and routers' cores before an order."""

import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction

from portal.accounts import permissions
from portal.accounts.models import Customer, User
from portal.allocation.calibrated_weights import weights_of
from portal.allocation.cpu_core_bookings import EndLoad, cores_book
from portal.allocation.router_packet_capacity import dearest
from portal.core.each_row import each_row
from portal.events.outbox import announce
from portal.inventory.models import Port
from portal.vll.errors import HoldRenewedOut, HoldUnknown, NotAllowedToOrder, TooManyHolds
from portal.vll.models import Hold
from portal.vll.models.hold import MAX_HOLDS, MAX_RENEWALS
from portal.vll.operations.end_validation import EndRequest
from portal.vll.operations.line_request_check import check_ports, core_loads
from portal.vll.operations.resource_leases import Leased, ends_lease, leases_release
from portal.vll.revision_content import EndContent

LASTS = timedelta(seconds=900)


@transaction.atomic
def hold_make(*, user: User, a_end: EndRequest, z_end: EndRequest, cir_bps: int, now: datetime) -> Hold:
    """Reserve these frames and ``cir_bps`` (bit/s) on both ports for 900 s.

    The hold reserves as much of the routers' cores as the most expensive transport would need. Raises the
    errors of an order about rate, ports and tags, VlanTaken, NoVlanFree, PortFull, RouterFull and
    TooManyHolds.
    """
    ends = {"a": a_end, "z": z_end}
    found = check_ports(user=user, ends=ends, cir_bps=cir_bps, lock=True)
    customer = found.owned()
    pk = uuid.uuid4()
    contents = ends_lease(ends=ends, ports=found.ports, cir_bps=cir_bps, holder=pk, leased=None, now=now)
    hold = _in_a_free_slot(
        customer,
        pk=pk,
        held_by=user.username,
        created_at=now,
        expires_at=now + LASTS,
        cir_bps=cir_bps,
        ends={side: asdict(end) for side, end in contents.items()},
    )
    _cores_hold(found.ports, cir_bps=cir_bps, holder=pk)
    _announce("hold.made", hold, now=now, actor=user.username)
    return hold


def _cores_hold(ports: Mapping[str, Port], *, cir_bps: int, holder: uuid.UUID) -> None:
    """Book cores for the transport that needs most at each end: the order may choose any transport."""
    within_router = ports["a"].router_id == ports["z"].router_id
    ends: dict[str, EndLoad] = {}
    for side, port in ports.items():
        transport = dearest(within_router=within_router, weights=weights_of(port.router))
        ends |= core_loads({side: port}, cir_bps=cir_bps, transport=transport)
    cores_book(ends=ends, transport=transport, holder=holder)


@transaction.atomic
def hold_renew(*, user: User, hold: uuid.UUID, now: datetime) -> Hold:
    """Extend a hold to 900 s from now, at most three times.

    Raises HoldUnknown, NotAllowedToOrder, HoldRenewedOut.
    """
    row = _locked(user, hold, now)
    if row.renewals >= MAX_RENEWALS:
        raise HoldRenewedOut(maximum=MAX_RENEWALS)
    row.renewals += 1
    row.expires_at = now + LASTS
    row.save(update_fields=["renewals", "expires_at"])
    _announce("hold.renewed", row, now=now, actor=user.username)
    return row


@transaction.atomic
def hold_release(*, user: User, hold: uuid.UUID, now: datetime) -> None:
    """Release a reservation. Raises HoldUnknown, NotAllowedToOrder."""
    _end(_locked(user, hold, now), now=now, kind="hold.released", actor=user.username)


def holds_expire(*, now: datetime) -> int:
    """Release expired holds; return how many.

    Each hold has its own transaction, so that no transaction locks the ports of several holds.
    """
    expired = Hold.objects.filter(expires_at__lte=now).order_by("expires_at").values_list("pk", flat=True)
    return sum(each_row(expired, lambda pk: _hold_expire(pk, now), what="the expiry of a hold"))


@transaction.atomic
def _hold_expire(pk: uuid.UUID, now: datetime) -> int:
    # Skip a hold that an order is using, or that a user is renewing, at this moment.
    row = Hold.objects.filter(pk=pk, expires_at__lte=now).select_for_update(skip_locked=True).first()
    if row is None:
        return 0
    _end(row, now=now, kind="hold.expired", actor="")
    return 1


@dataclass(frozen=True, slots=True)
class Taken:
    """A hold that an order takes over, locked until the end of the transaction."""

    row: Hold

    @property
    def pk(self) -> uuid.UUID:
        return self.row.pk

    @property
    def leased(self) -> Leased:
        """Return the reserved leases."""
        return _leased(self.row)

    def end(self, *, now: datetime, kind: str, actor: str, vll_id: uuid.UUID) -> None:
        """Delete the hold. The caller has already given its leases to another holder."""
        _announce(kind, self.row, now=now, actor=actor, vll_id=vll_id)
        self.row.delete()


def hold_take(*, user: User, hold: uuid.UUID, now: datetime) -> Taken:
    """Lock a hold for an order. Raises HoldUnknown, NotAllowedToOrder."""
    return Taken(_locked(user, hold, now))


def hold_read(*, user: User, hold: uuid.UUID, now: datetime) -> Leased:
    """Return the leases that an order with this hold would take over.

    Raises HoldUnknown, NotAllowedToOrder.
    """
    return _leased(_found(Hold.objects.all(), user, hold, now))


def _leased(row: Hold) -> Leased:
    ends = {side: EndContent.from_json(row.ends[side]) for side in "az"}
    return Leased(owner=row.pk, cir_bps=row.cir_bps, ends=ends)


def _locked(user: User, hold: uuid.UUID, now: datetime) -> Hold:
    return _found(Hold.objects.select_for_update(of=("self",)), user, hold, now)


def _found(holds: Any, user: User, hold: uuid.UUID, now: datetime) -> Hold:
    mine = holds.visible_to(user).filter(pk=hold, expires_at__gt=now).select_related("customer")
    row: Hold | None = mine.first()
    if row is None:
        raise HoldUnknown(hold=str(hold))
    if not permissions.may_order(user, row.customer):
        raise NotAllowedToOrder(customer=row.customer.name)
    return row


def _in_a_free_slot(customer: Customer, **columns: Any) -> Hold:
    for slot in range(1, MAX_HOLDS + 1):
        try:
            with transaction.atomic():
                hold: Hold = Hold.objects.create(customer=customer, slot=slot, **columns)
                return hold
        except IntegrityError as error:
            if "a_hold_has_its_own_slot" not in str(error):
                raise
    raise TooManyHolds(customer=customer.name, maximum=MAX_HOLDS)


def _end(row: Hold, *, now: datetime, kind: str, actor: str) -> None:
    leases_release(row.pk, now=now)
    _announce(kind, row, now=now, actor=actor)
    row.delete()


def _announce(kind: str, row: Hold, *, now: datetime, actor: str, vll_id: uuid.UUID | None = None) -> None:
    announce(
        kind,
        now=now,
        customer_id=row.customer_id,
        vll_id=vll_id,
        actor=actor,
        data={"hold": str(row.pk), "expires_at": row.expires_at.isoformat()},
    )
