import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.accounts.models import User
from portal.inventory.models import Port
from portal.vll.models import RouterConvergence
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.router_answers import answer, refuse
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


def test_ports_show_their_booked_bandwidth(isp: Isp, alice: User) -> None:
    order(isp, alice)
    shown = text(signed_in(alice).get("/ports/"))
    assert shown.count("rhino:host-cust") == 2
    assert shown.count("1 Gbit/s of 10 Gbit/s") == 2


def test_only_the_noc_reads_whether_a_port_is_a_uni(isp: Isp, alice: User, nora: User) -> None:
    assert text(signed_in(nora).get("/ports/")).count("UNI") == 4
    assert "UNI" not in text(signed_in(alice).get("/ports/"))


def test_stranger_sees_no_foreign_port(isp: Isp, charlie: User) -> None:
    shown = text(signed_in(charlie).get("/ports/"))
    assert "rhino" not in shown
    assert "No ports yet" in shown


def test_more_ports_take_no_more_queries(isp: Isp, alice: User) -> None:
    client = signed_in(alice)

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            client.get("/ports/")
        return len(captured)

    few = queries()
    model = isp.ports["rhino:host-cust1"]
    for number in range(10, 20):
        Port.objects.create(
            router=model.router,
            interface=f"host-x{number}",
            customer=model.customer,
            speed_bps=1,
            bookable_bps=1,
        )
    assert queries() == few


def test_failed_orders_show_the_reason(isp: Isp, alice: User) -> None:
    vll = order(isp, alice, description="Milk run").vll
    refuse(vll, "a")
    answer(vll, "a", "removed")
    answer(vll, "z", "removed")
    shown = text(signed_in(alice).get("/orders/"))
    assert "Milk run Add Failed Something else on rhino already uses this VLAN (host-cust1.7)." in shown


def test_stranger_sees_no_foreign_order(isp: Isp, alice: User, charlie: User) -> None:
    order(isp, alice, description="Milk run")
    assert "Milk run" not in text(signed_in(charlie).get("/orders/"))


def test_noc_sees_orders_with_their_customer(isp: Isp, alice: User, nora: User) -> None:
    order(isp, alice, description="Milk run")
    assert "Milk run Alpine Dairy" in text(signed_in(nora).get("/orders/"))


def test_only_the_noc_sees_routers(isp: Isp, alice: User, nora: User) -> None:
    assert signed_in(alice).get("/routers/").status_code == 403
    assert signed_in(nora).get("/routers/").status_code == 200


def test_router_list_distinguishes_reporting_silent_and_transit(isp: Isp, nora: User) -> None:
    rhino, hippo = isp.routers["rhino"], isp.routers["hippo"]
    hippo.observed.reported_at = hippo.observed.reported_at.replace(year=2020)
    hippo.observed.simulated = True
    hippo.observed.generation_stored = 7
    hippo.observed.save()
    RouterConvergence.objects.update_or_create(router=hippo, defaults={"last_error": "connection refused"})
    shown = text(signed_in(nora).get("/routers/"))
    row = {name: shown[shown.index(f" {name} ") :][:200] for name in ("rhino", "hippo", "zebra")}
    assert rhino.has_agent
    assert "Reporting" in row["rhino"].split("zebra")[0]
    assert "Silent" in row["hippo"]
    assert "Simulated" in row["hippo"]
    assert "connection refused" in row["hippo"]
    assert "Transit only" in row["zebra"]
