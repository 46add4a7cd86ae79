"""Rates beyond 32 bits: what is booked is given back, to the bit."""

import pytest

from portal.accounts.models import User
from portal.core import clock
from portal.inventory.models import Port
from portal.vll.models import Vll
from portal.vll.operations.line_removal import order_delete
from portal.vll.operations.modify_line import order_modify
from portal.vll.operations.order_endings import order_cancel
from portal.vll.operations.reservations import reservation_make, reservation_release
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import end, order
from tests.integration.router_answers import activate, answer

pytestmark = pytest.mark.django_db
RATES = [2**31 - 1, 2**31, 2**32 - 1, 2**32, 6 * GBIT, 10 * GBIT]


def booked(isp: Isp) -> set[int]:
    names = ("rhino:host-cust1", "hippo:host-cust1")
    return set(
        Port.objects.filter(pk__in=[isp.ports[name].pk for name in names]).values_list(
            "booked_bps", flat=True
        )
    )


@pytest.mark.parametrize("cir_bps", RATES)
def test_what_a_line_booked_is_free_when_it_is_gone(isp: Isp, alice: User, cir_bps: int) -> None:
    vll = order(isp, alice, cir_bps=cir_bps).vll
    assert booked(isp) == {cir_bps}
    activate(vll)
    order_delete(user=alice, vll=vll, now=clock.now())
    vll.refresh_from_db()
    for side in "az":
        answer(vll, side, "removed")
    assert booked(isp) == {0}


@pytest.mark.parametrize("cir_bps", RATES)
@pytest.mark.parametrize("ends", ["done", "called off"])
def test_a_change_of_rate_leaves_exactly_the_new_bookings(
    isp: Isp, alice: User, cir_bps: int, ends: str
) -> None:
    vll = order(isp, alice, cir_bps=GBIT).vll
    activate(vll)
    for wanted in (cir_bps, GBIT):
        before = Vll.objects.get(pk=vll.pk).cir_bps
        changed = order_modify(user=alice, vll=vll, changes={"cir_bps": wanted}, now=clock.now())
        vll.refresh_from_db()
        if ends == "called off":
            order_cancel(user=alice, order=changed, now=clock.now())
            vll.refresh_from_db()
        activate(vll)
        vll.refresh_from_db()
        assert booked(isp) == {before if ends == "called off" else wanted}
        if ends == "called off":
            break


@pytest.mark.parametrize("cir_bps", RATES)
def test_released_reservation_leaves_its_resources_free(isp: Isp, alice: User, cir_bps: int) -> None:
    ends = {"a_end": end(isp, "rhino:host-cust1"), "z_end": end(isp, "hippo:host-cust1")}
    made = reservation_make(user=alice, cir_bps=cir_bps, now=clock.now(), **ends)
    assert booked(isp) == {cir_bps}
    reservation_release(user=alice, reservation=made.pk, now=clock.now())
    assert booked(isp) == {0}
