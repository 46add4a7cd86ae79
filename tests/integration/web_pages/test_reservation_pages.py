"""Reservations in the web UI: the user requests one, sees the remaining time, and orders with it."""

from datetime import timedelta
from typing import Any

import pytest

from portal.accounts.models import User
from portal.core import clock
from portal.vll.models import Order, Reservation, VllEnd
from portal.vll.operations.reservations import reservation_make
from tests.integration.isp import Isp
from tests.integration.orders import end
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


def filled(isp: Isp, **more: Any) -> dict[str, Any]:
    ends = {
        f"{side}-{name}": value
        for side, router in (("a_end", "rhino"), ("z_end", "hippo"))
        for name, value in (
            ("port", isp.ports[f"{router}:host-cust1"].pk),
            ("tagging", "dot1q"),
            ("outer_vlan", "any"),
        )
    }
    line = {"cir": "100", "cir_unit": 10**6, "svc_mtu": 1500, "transport": "auto", "description": "Milk run"}
    return {**ends, **line, **more}


@pytest.fixture
def reservation(isp: Isp, alice: User) -> Reservation:
    ends = {name: end(isp, f"{name_of}:host-cust1", outer=7) for name, name_of in _ROUTERS.items()}
    return reservation_make(user=alice, cir_bps=10**8, now=clock.now(), **ends)


_ROUTERS = {"a_end": "rhino", "z_end": "hippo"}


def test_opening_and_checking_the_form_reserves_nothing(isp: Isp, alice: User) -> None:
    page = signed_in(alice)
    assert "Reserve for 15 minutes" in text(page.get("/orders/new/"))
    page.post("/orders/new/check/", filled(isp))
    assert not Reservation.objects.exists()


def test_requested_reservation_is_made_and_the_form_keeps_its_values(isp: Isp, alice: User) -> None:
    answer = signed_in(alice).post("/orders/new/hold/", filled(isp, do="make"))
    made = Reservation.objects.get()
    assert answer.status_code == 200
    assert "rhino:host-cust1, VLAN 100 – hippo:host-cust1, VLAN 100 (100 Mbit/s) is yours until" in text(
        answer
    )
    assert f'name="hold" value="{made.pk}"' in answer.content.decode()
    assert 'value="Milk run"' in answer.content.decode()


def test_form_with_errors_reserves_nothing(isp: Isp, alice: User) -> None:
    answer = signed_in(alice).post("/orders/new/hold/", filled(isp, do="make", cir=""))
    assert answer.status_code == 422
    assert not Reservation.objects.exists()


def test_reservation_can_be_renewed_three_times(isp: Isp, alice: User, reservation: Reservation) -> None:
    page, said = signed_in(alice), ""
    for _ in range(3):
        said = text(page.post("/orders/new/hold/", filled(isp, do="renew", hold=reservation.pk)))
    assert "Renew" not in said
    refused = page.post("/orders/new/hold/", filled(isp, do="renew", hold=reservation.pk))
    assert refused.status_code == 422
    assert "This reservation has been renewed 3 times, which is the limit." in text(refused)


def test_reservation_can_be_released_from_the_order_form(
    isp: Isp, alice: User, reservation: Reservation
) -> None:
    said = text(signed_in(alice).post("/orders/new/hold/", filled(isp, do="release", hold=reservation.pk)))
    assert "Reserve for 15 minutes" in said
    assert not Reservation.objects.exists()


def test_order_uses_its_reservation(isp: Isp, alice: User, reservation: Reservation) -> None:
    assert signed_in(alice).post("/orders/new/", filled(isp, hold=reservation.pk)).status_code == 302
    assert not Reservation.objects.exists()
    assert set(VllEnd.objects.values_list("outer_vlan", flat=True)) == {7}


def test_expired_reservation_is_reported_and_the_next_order_omits_it(
    isp: Isp, alice: User, reservation: Reservation
) -> None:
    Reservation.objects.update(created_at=clock.now() - timedelta(seconds=901), expires_at=clock.now())
    page = signed_in(alice)
    refused = page.post("/orders/new/", filled(isp, hold=reservation.pk))
    assert refused.status_code == 422
    assert "or it has expired" in text(refused)
    assert 'name="hold"' not in refused.content.decode()
    assert not Order.objects.exists()


def test_list_shows_the_reservation_and_links_to_a_filled_form(alice: User, reservation: Reservation) -> None:
    page = signed_in(alice)
    shown = page.get("/holds/")
    assert "rhino:host-cust1 VLAN 7 hippo:host-cust1 VLAN 7 100 Mbit/s alice" in text(shown)
    form = page.get(f"/orders/new/?hold={reservation.pk}").context["form"]
    assert (form.a_end["outer_vlan"].value(), form.line["cir"].value(), form.reserved.row) == (
        7,
        "100",
        reservation,
    )


def test_list_renews_and_releases(alice: User, reservation: Reservation) -> None:
    page = signed_in(alice)
    assert page.post(f"/holds/{reservation.pk}/renew/").status_code == 302
    reservation.refresh_from_db()
    assert reservation.renewals == 1
    assert page.post(f"/holds/{reservation.pk}/release/").status_code == 302
    assert not Reservation.objects.exists()


def test_viewer_sees_the_reservation_and_cannot_change_it(bob: User, reservation: Reservation) -> None:
    page = signed_in(bob)
    assert "Release" not in text(page.get("/holds/"))
    assert page.post(f"/holds/{reservation.pk}/release/").status_code == 403
    assert Reservation.objects.exists()


def test_reservation_of_another_customer_is_not_found(charlie: User, reservation: Reservation) -> None:
    page = signed_in(charlie)
    assert "Nothing is reserved" in text(page.get("/holds/"))
    assert page.post(f"/holds/{reservation.pk}/renew/").status_code == 404
