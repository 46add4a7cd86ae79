"""Reservations: they can be renewed a few times and ordered without a gap, and expire in time."""

import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import IntegrityError, transaction

from portal.accounts.models import User
from portal.allocation.errors import PortFull, VlanTaken
from portal.celery_tasks import EXPIRE_RESERVATIONS
from portal.core import clock
from portal.inventory.models import Port
from portal.vll.errors import (
    NotAllowedToOrder,
    PortUnknown,
    ReservationRenewedOut,
    ReservationUnknown,
    TooManyReservations,
)
from portal.vll.models import Reservation
from portal.vll.operations.reservations import (
    reservation_make,
    reservation_release,
    reservation_renew,
    reservations_expire,
)
from tests.integration.isp import GBIT, Isp
from tests.integration.leases import booked, owners, sums_are_right, vlans
from tests.integration.orders import end, order
from tests.integration.router_answers import activate

pytestmark = pytest.mark.django_db
LASTS = timedelta(seconds=900)


def reserve(
    isp: Isp, user: User, outer: Any = 100, now: datetime | None = None, cir_bps: int = GBIT
) -> Reservation:
    return reservation_make(
        user=user,
        a_end=end(isp, "rhino:host-cust1", outer=outer),
        z_end=end(isp, "hippo:host-cust1", outer=outer),
        cir_bps=cir_bps,
        now=now or clock.now(),
    )


def test_reservation_blocks_others_for_900_seconds(isp: Isp, alice: User) -> None:
    made = reserve(isp, alice)
    assert made.expires_at - made.created_at == LASTS
    assert vlans(made.pk) == [("a", "rhino:host-cust1", 100), ("z", "hippo:host-cust1", 100)]
    with pytest.raises(VlanTaken):
        order(isp, alice)
    with pytest.raises(PortFull):
        reserve(isp, alice, outer=101, cir_bps=10 * GBIT)
    assert reservations_expire(now=made.expires_at - timedelta(seconds=1)) == 0
    assert reservations_expire(now=made.expires_at) == 1
    assert (owners(), Reservation.objects.count()) == (set(), 0)
    assert sums_are_right()
    order(isp, alice)


def test_beat_sweeps_often_enough_to_release_within_five_seconds() -> None:
    assert settings.CELERY_BEAT_SCHEDULE[EXPIRE_RESERVATIONS]["schedule"] <= 2


def test_order_takes_over_its_reservation(isp: Isp, alice: User) -> None:
    made = reserve(isp, alice, outer="any")
    vll = order(
        isp,
        alice,
        a_end=end(isp, "rhino:host-cust1", outer="any"),
        z_end=end(isp, "hippo:host-cust1", outer="any"),
        reservation=made.pk,
    ).vll
    assert owners() == {vll.pk}
    assert vlans(vll.pk) == [("a", "rhino:host-cust1", 100), ("z", "hippo:host-cust1", 100)]
    assert not Reservation.objects.exists()
    assert sums_are_right()
    activate(vll)
    assert vll.lifecycle == "active"


def test_different_order_leases_its_values_and_releases_the_rest(isp: Isp, alice: User) -> None:
    made = reserve(isp, alice)
    vll = order(
        isp, alice, a_end=end(isp, "rhino:host-cust2", outer=5), cir_bps=2 * GBIT, reservation=made.pk
    ).vll
    assert vlans(vll.pk) == [("a", "rhino:host-cust2", 5), ("z", "hippo:host-cust1", 100)]
    assert booked(vll.pk) == [("a", "rhino:host-cust2", 2 * GBIT), ("z", "hippo:host-cust1", 2 * GBIT)]
    assert owners() == {vll.pk}
    assert sums_are_right()


def test_refused_order_leaves_the_reservation_unchanged(isp: Isp, alice: User) -> None:
    Port.objects.update(speed_bps=100 * GBIT)
    made = reserve(isp, alice)
    with pytest.raises(PortFull), transaction.atomic():
        order(isp, alice, cir_bps=11 * GBIT, reservation=made.pk)
    assert Reservation.objects.get().pk == made.pk
    assert booked(made.pk) == [("a", "rhino:host-cust1", GBIT), ("z", "hippo:host-cust1", GBIT)]


def test_expired_reservation_is_unknown_before_the_sweep(isp: Isp, alice: User) -> None:
    made = reserve(isp, alice)
    for use in (
        lambda: order(isp, alice, reservation=made.pk, now=made.expires_at),
        lambda: reservation_renew(user=alice, reservation=made.pk, now=made.expires_at),
        lambda: order(isp, alice, reservation=uuid.uuid4()),
    ):
        with pytest.raises(ReservationUnknown):
            use()


def test_reservation_is_renewed_three_times(isp: Isp, alice: User) -> None:
    now = clock.now()
    made = reserve(isp, alice, now=now)
    for times in (1, 2, 3):
        now += timedelta(minutes=10)
        renewed = reservation_renew(user=alice, reservation=made.pk, now=now)
        assert (renewed.renewals, renewed.expires_at) == (times, now + LASTS)
    with pytest.raises(ReservationRenewedOut):
        reservation_renew(user=alice, reservation=made.pk, now=now)
    with pytest.raises(IntegrityError, match="a_hold_is_renewed_three_times"), transaction.atomic():
        Reservation.objects.update(renewals=4)


def test_customer_has_at_most_five_reservations(isp: Isp, alice: User) -> None:
    made = [reserve(isp, alice, outer=vlan, cir_bps=1) for vlan in range(1, 6)]
    with pytest.raises(TooManyReservations) as refusal, transaction.atomic():
        reserve(isp, alice, outer=6, cir_bps=1)
    assert refusal.value.maximum == 5
    assert len(owners()) == 5
    reservation_release(user=alice, reservation=made[2].pk, now=clock.now())
    assert reserve(isp, alice, outer=6, cir_bps=1).slot == 3
    with pytest.raises(IntegrityError, match="a_customer_has_five_holds"):
        Reservation.objects.filter(slot=1).update(slot=6)


def test_stranger_and_viewer_cannot_use_a_reservation(
    isp: Isp, alice: User, bob: User, charlie: User
) -> None:
    made = reserve(isp, alice)
    with pytest.raises(ReservationUnknown):
        reservation_release(user=charlie, reservation=made.pk, now=clock.now())
    with pytest.raises(PortUnknown):
        reserve(isp, charlie, outer=7)
    with pytest.raises(NotAllowedToOrder):
        reservation_renew(user=bob, reservation=made.pk, now=clock.now())
    with pytest.raises(NotAllowedToOrder):
        reserve(isp, bob, outer=7)
