"""The navigation: the NOC's three groups with counts of pending work, and the customers' few pages."""

import re
from collections import Counter
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import get_resolver, reverse

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.diagnosis.trouble_reports import trouble_close, trouble_report
from portal.telemetry.models import AgentClock
from portal.vll.models import Vll
from portal.vll.operations.order_approval import order_reject
from portal.web.page.navigation import OF_CUSTOMERS, OF_THE_ACCOUNT, OF_THE_NOC, page_at, waiting_counts
from tests.integration.database.test_tenants_stay_apart import patterns
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import end, order
from tests.integration.raised_alarms import alarms_raised
from tests.integration.router_answers import activate
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
NOC_PAGES = [page for group in OF_THE_NOC for page in group.pages]
# Pages that open from a line, a person or a mail, or that take a form: they belong to no page of the menus.
ELSEWHERE = {
    *(
        "search",
        "palette",
        "trouble-report",
        "trouble-close",
        "noc-netbox-run",
        "noc-suggest",
        "unsubscribe",
        "noc-webhook-history",
        "routers",
    ),
    *("provider-logo", "provider-style", "invitation", "live", "noc-interfaces"),
}


@pytest.fixture
def line(isp: Isp, alice: User) -> Vll:
    vll = order(isp, alice, description="Milk run").vll
    activate(vll)
    return vll


def current(response: Any) -> set[tuple[str, str]]:
    """Return the marked links and how they are marked."""
    found = re.findall(r'<a href="([^"]+)"[^>]*?aria-current="(\w+)"', response.content.decode(), re.DOTALL)
    return set(found)


class TestPendingWork:
    def test_no_pending_work_shows_no_counts(self, isp: Isp, nora: User) -> None:
        assert not any(waiting_counts().values())
        assert "waiting" not in text(signed_in(nora).get("/"))

    def test_pending_work_is_counted_where_it_is_decided(
        self, isp: Isp, line: Vll, alice: User, nora: User
    ) -> None:
        trouble_report(user=alice, vll=line, note="It stutters", now=clock.now())
        AgentClock.objects.create(
            router=isp.routers["rhino"], boot_id=uuid4(), offset_ms=7_200_000, measured_at=clock.now()
        )
        Customer.objects.update(approve_up_to_bps=0)
        alice.refresh_from_db()
        pending = order(isp, alice, cir_bps=GBIT, description="Pending", **_other_ports(isp))
        shown = text(signed_in(nora).get("/"))
        for each in (
            "Menu 2 2 waiting",
            "Operate 2 2 waiting",
            "Orders pending approval 1",
            "Trouble reports 1",
        ):
            assert each in shown
        # Work that is also an alarm is counted once.
        alarms_raised()
        shown = text(signed_in(nora).get("/"))
        assert re.search(r"Alarms [3-9]", shown)
        assert "Orders pending approval 1" in shown
        all_alarms, in_all = (re.search(rf"{name} (\d+)", shown) for name in ("Alarms", "Operate"))
        assert [found and found[1] for found in (all_alarms, in_all)] == [str(waiting_counts()["alarms"])] * 2
        order_reject(user=nora, order=pending, reason="no", now=clock.now())
        trouble_close(user=nora, report=line.trouble_reports.get(), now=clock.now())
        shown = text(signed_in(nora).get("/"))
        assert "Operate 1 1 waiting" in shown

    def test_counts_take_one_statement_for_the_noc_and_none_for_customers(
        self, isp: Isp, nora: User, alice: User
    ) -> None:
        assert len(_counting(nora)) == 1
        assert _counting(alice) == []


def _other_ports(isp: Isp) -> dict[str, Any]:
    return {"a_end": end(isp, "rhino:host-cust2"), "z_end": end(isp, "hippo:host-cust2")}


def _counting(user: User) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        signed_in(user).get("/account/")
    return [query["sql"] for query in captured if "diagnosis_troublereport" in query["sql"]]


class TestCurrentPage:
    def test_page_is_marked_in_its_menu_and_group(self, isp: Isp, nora: User) -> None:
        response = signed_in(nora).get("/noc/pools/")
        assert current(response) == {("/noc/pools/", "page")}
        assert response.content.decode().count('aria-current="page"') == 2
        assert '<nav class="ll-group-row ll-menu" aria-label="Inventory">' in response.content.decode()

    def test_subpage_marks_its_parent_page(self, isp: Isp, line: Vll, nora: User) -> None:
        client = signed_in(nora)
        for address, marked in (
            (f"/noc/routers/{isp.routers['rhino'].pk}/", "/noc/routers/"),
            (f"/vlls/{line.pk}/", "/"),
            (f"/vlls/{line.pk}/diagnosis/", "/"),
            (f"/noc/orders/{line.orders.get().pk}/", "/noc/orders/"),
            ("/orders/new/", "/orders/"),
            ("/ports/", "/noc/ports/"),
            ("/noc/customers/add/", "/noc/customers/"),
        ):
            assert current(client.get(address)) == {(marked, "true")}, address

    def test_customers_have_few_pages_and_no_second_row(self, isp: Isp, alice: User) -> None:
        response = signed_in(alice).get("/ports/")
        assert current(response) == {("/ports/", "page")}
        assert "ll-group-row" not in response.content.decode()
        assert "/noc/" not in response.content.decode()

    def test_anonymous_reader_has_no_navigation(self, db: None) -> None:
        shown = Client().get("/login/").content.decode()
        assert "<nav" not in shown
        assert "data-palette" not in shown


class TestMenuPages:
    @pytest.mark.parametrize("pages", [OF_CUSTOMERS, NOC_PAGES], ids=["customers", "the NOC"])
    def test_each_page_has_a_unique_address_and_key(self, pages: Any) -> None:
        assert all(reverse(page.name) for page in pages)
        keys = Counter(page.key for page in pages if page.key)
        assert set(keys.values()) == {1}
        assert "g" not in keys

    def test_every_page_of_the_portal_belongs_to_a_menu_entry(self) -> None:
        pages = [*NOC_PAGES, *OF_THE_ACCOUNT]
        names = {
            f"web:{entry.name}" for _, entry in patterns(get_resolver()) if _is_of_the_web(entry.lookup_str)
        }
        lost = {name for name in names if page_at(name, pages) is None}
        assert lost <= {f"web:{name}" for name in ELSEWHERE}


def _is_of_the_web(view: str) -> bool:
    return view.startswith("portal.web.")


class TestTroubleReports:
    def test_noc_reads_pending_work(self, line: Vll, alice: User, nora: User) -> None:
        trouble_report(user=alice, vll=line, note="It <b>stutters</b>", now=clock.now())
        shown = text(signed_in(nora).get("/noc/trouble/"))
        assert "Milk run Alpine Dairy It <b>stutters</b>" in shown
        trouble_close(user=nora, report=line.trouble_reports.get(), now=clock.now())
        assert "No trouble reports are open" in text(signed_in(nora).get("/noc/trouble/"))

    def test_customers_do_not_read_pending_work(self, ada: User) -> None:
        assert signed_in(ada).get("/noc/trouble/").status_code == 403
