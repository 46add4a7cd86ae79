"""A port whose link is slower than agreed raises an alarm, says so, and takes no more than is left."""

from datetime import timedelta
from typing import Any

import pytest

from portal.accounts.models import User
from portal.alarms.kinds import Kind
from portal.allocation.bandwidth_bookings import bandwidth_look
from portal.allocation.errors import PortFull
from portal.core import clock
from portal.inventory.models import ObservedInterface, ObservedRouter, Port
from portal.inventory.port_link_state import bookable_at
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import end, modify, order
from tests.integration.raised_alarms import alarm_texts, alarms_found
from tests.integration.router_answers import activate
from tests.integration.web_pages.browser import signed_in, text
from tests.integration.web_pages.test_vll_orders import fields

pytestmark = pytest.mark.django_db
NAME = "rhino:host-cust1"


def link(isp: Isp, speed_bps: int | None, **otherwise: Any) -> Port:
    """Rhino's first port, as its agent last reported the link."""
    port = isp.ports[NAME]
    seen = {"admin_up": True, "link_up": True, "ip_mtu": 9000, "speed_bps": speed_bps} | otherwise
    ObservedInterface.objects.update_or_create(router=port.router, name=port.interface, defaults=seen)
    return port


def another(isp: Isp, alice: User, **wanted: Any) -> None:
    """Order a second line between the same ports."""
    ends = {"a_end": end(isp, NAME, outer=200), "z_end": end(isp, "hippo:host-cust1", outer=200)}
    order(isp, alice, **ends, **wanted)


@pytest.mark.parametrize(
    ("bookable", "link_bps", "left"),
    [(10, 10, 10), (10, 25, 10), (10, None, 10), (10, 4, 4), (20, 5, 10), (5, 5, 2.5)],
)
def test_a_slower_link_has_room_for_the_same_part_of_its_speed(
    bookable: int, link_bps: int | None, left: float
) -> None:
    port = Port(speed_bps=10 * GBIT, bookable_bps=bookable * GBIT)
    assert bookable_at(port, None if link_bps is None else link_bps * GBIT) == left * GBIT


def test_a_bond_that_lost_a_member_takes_no_more_than_is_left(isp: Isp, alice: User) -> None:
    vll = order(isp, alice, cir_bps=3 * GBIT).vll
    activate(vll)
    port = link(isp, 5 * GBIT)
    with pytest.raises(PortFull) as refused:
        another(isp, alice, cir_bps=2 * GBIT + 1)
    error = refused.value
    assert (error.free_bps, error.link_bps, error.speed_bps) == (2 * GBIT, 5 * GBIT, 10 * GBIT)
    assert "runs at 5 Gbit/s instead of 10 Gbit/s and has 2 Gbit/s left" in error.sentence
    another(isp, alice, cir_bps=2 * GBIT)
    port.refresh_from_db()
    assert port.booked_bps == 5 * GBIT


def test_what_is_booked_stays_and_can_only_shrink(isp: Isp, alice: User) -> None:
    vll = order(isp, alice, cir_bps=8 * GBIT).vll
    activate(vll)
    link(isp, 5 * GBIT)
    with pytest.raises(PortFull) as refused:
        modify(alice, vll, cir_bps=8 * GBIT + 1)
    assert refused.value.free_bps == 5 * GBIT
    modify(alice, vll, cir_bps=7 * GBIT)


@pytest.mark.parametrize(
    ("speed_bps", "otherwise"),
    [(None, {}), (10 * GBIT, {}), (25 * GBIT, {}), (GBIT, {"link_up": False}), (GBIT, {"admin_up": False})],
    ids=["unknown", "as agreed", "faster", "without link", "shut"],
)
def test_other_links_change_nothing(
    isp: Isp, alice: User, speed_bps: int | None, otherwise: dict[str, Any]
) -> None:
    port = link(isp, speed_bps, **otherwise)
    order(isp, alice, cir_bps=10 * GBIT)
    assert not alarms_found(Kind.PORT_SLOW)
    assert "at this speed" not in text(signed_in(alice).get(f"/ports/{port.pk}/"))


def test_a_preview_says_the_same_as_the_order(isp: Isp, alice: User) -> None:
    port = link(isp, 5 * GBIT)
    said = signed_in(alice).post("/orders/new/check/", fields(isp, cir="6"), headers={"hx-request": "true"})
    assert "runs at 5 Gbit/s instead of 10 Gbit/s" in text(said)
    with pytest.raises(PortFull) as refused:
        bandwidth_look(port=port, side="a", cir_bps=6 * GBIT, own_bps=0, booked_besides=0)
    assert refused.value.free_bps == 5 * GBIT
    bandwidth_look(port=port, side="a", cir_bps=6 * GBIT, own_bps=6 * GBIT, booked_besides=0)


def test_an_alarm_says_what_is_booked_and_what_is_left(isp: Isp, alice: User) -> None:
    activate(order(isp, alice, cir_bps=8 * GBIT).vll)
    link(isp, 9 * GBIT)
    assert alarm_texts(Kind.PORT_SLOW) == [
        f"{NAME}: 9 Gbit/s of 10 Gbit/s. 8 Gbit/s is booked of the 9 Gbit/s that are left."
    ]
    port = link(isp, 5 * GBIT)
    [alarm] = alarm_texts(Kind.PORT_SLOW)
    assert "5 Gbit/s of 10 Gbit/s. 8 Gbit/s is booked, but only 5 Gbit/s can be kept." in alarm
    page = text(signed_in(alice).get(f"/ports/{port.pk}/"))
    assert "The link runs at 5 Gbit/s." in page
    assert "have booked 8 Gbit/s, but only 5 Gbit/s can be kept at this speed" in page
    assert "Still bookable 0 bit/s" in page
    link(isp, 10 * GBIT)
    assert alarm_texts(Kind.PORT_SLOW) == []


def test_of_a_router_that_is_silent_or_a_port_of_nobody_there_is_no_alarm(isp: Isp) -> None:
    port = link(isp, GBIT)
    assert len(alarms_found(Kind.PORT_SLOW)) == 1
    ObservedRouter.objects.filter(router=port.router).update(reported_at=clock.now() - timedelta(hours=1))
    assert alarms_found(Kind.PORT_SLOW) == []
    ObservedRouter.objects.filter(router=port.router).update(reported_at=clock.now())
    Port.objects.filter(pk=port.pk).update(customer=None)
    assert alarms_found(Kind.PORT_SLOW) == []
