"""The bookable bandwidth of a port: a percentage of its speed, by policy or per port, or a rate."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from portal.accounts.models import User
from portal.allocation.errors import PortFull
from portal.core import clock
from portal.inventory import operations
from portal.inventory.errors import BookableBelowBooked, BookableTwice, OutOfRange
from portal.inventory.models import Port
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import end, order
from tests.integration.web_pages.browser import save, signed_in, text

pytestmark = pytest.mark.django_db


def make(isp: Isp, nora: User, **facts: Any) -> Port:
    return operations.port_create(
        router=isp.routers["rhino"],
        interface="x1",
        user=nora,
        now=clock.now(),
        **{"speed_bps": GBIT, **facts},
    )


def change(port: Port, nora: User, **changes: Any) -> tuple[int, int | None]:
    changed = operations.port_change(port=port, user=nora, now=clock.now(), **changes)
    return changed.bookable_bps, changed.oversubscription_percent


def test_new_port_follows_the_policy(isp: Isp, nora: User, settings: Any) -> None:
    assert make(isp, nora).bookable_bps == GBIT
    settings.LONGLINE_OVERSUBSCRIPTION_PERCENT = 250
    port = operations.port_create(
        router=isp.routers["rhino"], interface="x2", user=nora, now=clock.now(), speed_bps=GBIT
    )
    assert (port.bookable_bps, port.oversubscription_percent) == (2_500_000_000, 250)


def test_port_has_a_percentage_or_a_rate_and_not_both(isp: Isp, nora: User) -> None:
    port = make(isp, nora, oversubscription_percent=150)
    assert port.bookable_bps == 1_500_000_000
    assert change(port, nora, speed_bps=10 * GBIT) == (15 * GBIT, 150)
    assert change(port, nora, bookable_bps=7) == (7, None)
    assert change(port, nora, speed_bps=GBIT) == (7, None)
    assert change(port, nora, oversubscription_percent=33) == (330_000_000, 33)
    assert change(port, nora, bookable_bps=None) == (GBIT, 100)
    assert change(port, nora, bookable_bps=2 * GBIT, oversubscription_percent=200) == (2 * GBIT, 200)
    with pytest.raises(BookableTwice) as refusal:
        change(port, nora, bookable_bps=2 * GBIT, oversubscription_percent=300)
    assert refusal.value.sentence.startswith("300 % of 1 Gbit/s is not 2 Gbit/s.")


@pytest.mark.parametrize("percent", [0, 5001, 10**9])
def test_operation_and_database_limit_the_percentage(isp: Isp, nora: User, percent: int) -> None:
    with pytest.raises(OutOfRange):
        make(isp, nora, oversubscription_percent=percent)
    if percent <= 5001:
        with pytest.raises(IntegrityError, match="oversubscription"), transaction.atomic():
            Port.objects.update(oversubscription_percent=percent)


def test_database_keeps_both_columns_consistent(isp: Isp, nora: User) -> None:
    port = make(isp, nora, oversubscription_percent=150)
    with pytest.raises(IntegrityError, match="oversubscription_says_what_is_bookable"), transaction.atomic():
        Port.objects.filter(pk=port.pk).update(bookable_bps=GBIT)


def test_orders_fill_the_bookable_bandwidth_and_the_refusal_names_the_port(
    isp: Isp, alice: User, nora: User
) -> None:
    for port in Port.objects.filter(interface="host-cust1"):
        change(port, nora, oversubscription_percent=150)
    order(isp, alice, cir_bps=10 * GBIT)
    more = {"a_end": end(isp, "rhino:host-cust1", outer=2), "z_end": end(isp, "hippo:host-cust1", outer=2)}
    with pytest.raises(PortFull) as refusal:
        order(isp, alice, cir_bps=5 * GBIT + 1, **more)
    assert "5 Gbit/s left of the 15 Gbit/s that can be booked on its 10 Gbit/s" in refusal.value.sentence
    order(isp, alice, cir_bps=5 * GBIT, **more)
    with pytest.raises(BookableBelowBooked):
        change(Port.objects.get(pk=isp.ports["rhino:host-cust1"].pk), nora, oversubscription_percent=149)


def test_api_and_page_show_and_accept_it(isp: Isp, nora: User, alice: User) -> None:
    made = client(nora).post(
        "/api/v1/ports",
        {"router": "rhino", "interface": "x1", "speed_bps": GBIT, "oversubscription_percent": 200},
        format="json",
    )
    assert (made.status_code, made.json()["bookable_bps"]) == (201, 2 * GBIT)
    port = made.json()["id"]
    assert "2 Gbit/s (200 %)" in text(signed_in(nora).get("/noc/ports/"))
    page = signed_in(nora).get(f"/noc/ports/{port}/change/").content.decode()
    assert 'value="200"' in page
    sent = {"kind": "uni", "speed_bps": "1000", "oversubscription_percent": "300", "max_frame": "9022"}
    assert save(signed_in(nora), f"/noc/ports/{port}/change/", sent).status_code == 302
    shown = client(alice).get(f"/api/v1/ports/{isp.ports['rhino:host-cust1'].pk}").json()
    assert shown["oversubscription_percent"] is None
    assert client(nora).get(f"/api/v1/ports/{port}").json()["bookable_bps"] == 3 * GBIT
