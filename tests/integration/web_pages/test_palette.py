"""The command palette finds only the objects and actions that its reader may see and use."""

import re
from typing import Any

import pytest
from django.test import Client

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.vll.models import Vll
from portal.vll.operations.modify_line import order_suspend
from portal.web.page.navigation import OF_CUSTOMERS
from tests.integration.isp import Isp
from tests.integration.orders import end, order
from tests.integration.router_answers import activate
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def line(isp: Isp, alice: User) -> Vll:
    vll = order(isp, alice, description="Milk run").vll
    activate(vll)
    return vll


def offered(user: User, q: str) -> dict[str, str]:
    """Return by option text the address that the option opens or the button that it presses."""
    answer = signed_in(user).get("/palette/", {"q": q})
    assert answer.status_code == 200
    page = answer.content.decode()
    assert "<html" not in page
    found = re.findall(r"<(?:a|button)\b[^>]*role=\"option\".*?</(?:a|button)>", page, re.DOTALL)
    return {_words(each): _where(each) for each in found}


def _words(option: str) -> str:
    bare = re.sub(r"<small>.*?</small>|<[^>]+>", " ", option, flags=re.DOTALL)
    return re.sub(r"\s+", " ", bare).strip().replace("&#x27;", "'")


def _where(option: str) -> str:
    where = re.search(r'(?:href|data-press)="([^"]+)"', option)
    assert where is not None
    return where[1]


def test_empty_input_lists_pages_and_actions(isp: Isp, alice: User) -> None:
    there = offered(alice, "")
    assert there.keys() >= {str(page.title) for page in OF_CUSTOMERS}
    assert there["Order a line"] == "/orders/new/"
    assert there["Sign out"] == "sign-out"
    assert not [each for each in there.values() if each.startswith("/noc/")]


def test_user_without_the_right_is_not_offered_to_order(isp: Isp, bob: User) -> None:
    assert "Order a line" not in offered(bob, "")
    assert "Order a line" not in offered(bob, "order")


def test_words_are_found_in_any_order(isp: Isp, nora: User) -> None:
    assert offered(nora, "rout stat")["Router status"] == "/routers/"
    assert offered(nora, "ROUTER add")["Add a router"] == "/noc/routers/add/"


def test_lines_are_found_by_part_of_their_name(line: Vll, alice: User) -> None:
    assert offered(alice, "milk")["Milk run"] == f"/vlls/{line.pk}/"
    assert "Milk run" not in offered(alice, "m"), "one letter fits too many"


def test_stranger_finds_no_foreign_object(line: Vll, charlie: User) -> None:
    for q in ("milk", "suspend milk", "host-cust1", str(line.pk)[:8], "Alpine"):
        assert list(offered(charlie, q)) == [f"Search for “{q}”"], q


def test_noc_finds_ports_routers_customers_and_orders(line: Vll, isp: Isp, nora: User) -> None:
    assert offered(nora, "rhino")["rhino"] == f"/noc/routers/{isp.routers['rhino'].pk}/"
    dairy = Customer.objects.get(name="Alpine Dairy")
    assert offered(nora, "alpine")["Alpine Dairy"] == f"/noc/customers/{dairy.pk}/"
    placed = line.orders.get()
    assert offered(nora, str(placed.pk)[:8])["Add Milk run"] == f"/noc/orders/{placed.pk}/"


def test_customer_reaches_an_orders_line_by_its_id(line: Vll, alice: User) -> None:
    placed = line.orders.get()
    assert offered(alice, str(placed.pk)[:8])["Add Milk run"] == f"/vlls/{line.pk}/"


class TestActionsOnLines:
    def test_verb_and_name_open_the_confirmation_page(self, line: Vll, alice: User) -> None:
        assert offered(alice, "suspend milk")["Suspend Milk run"] == f"/vlls/{line.pk}/suspend/"
        assert offered(alice, "SUS mil")["Suspend Milk run"] == f"/vlls/{line.pk}/suspend/"
        assert offered(alice, "remove milk run")["Remove Milk run"] == f"/vlls/{line.pk}/remove/"
        assert offered(alice, "diagnose milk")["Diagnose Milk run"] == f"/vlls/{line.pk}/diagnosis/"

    def test_each_option_can_be_opened(self, line: Vll, alice: User) -> None:
        client = signed_in(alice)
        for verb in ("change", "suspend", "remove", "test", "diagnose"):
            (where,) = [each for each in offered(alice, f"{verb} milk").values() if "/vlls/" in each]
            assert client.get(where).status_code == 200, verb

    def test_only_currently_possible_actions_are_offered(self, line: Vll, alice: User) -> None:
        order_suspend(user=alice, vll=line, now=clock.now())
        assert "Suspend Milk run" not in offered(alice, "suspend milk")

    def test_viewer_can_diagnose(self, line: Vll, bob: User) -> None:
        assert "Suspend Milk run" not in offered(bob, "suspend milk")
        assert "Diagnose Milk run" in offered(bob, "diagnose milk")

    def test_verb_alone_offers_the_newest_lines(self, line: Vll, isp: Isp, alice: User) -> None:
        ends = {"a_end": end(isp, "rhino:host-cust2"), "z_end": end(isp, "hippo:host-cust2")}
        newer = order(isp, alice, description="Newer", **ends).vll
        activate(newer)
        offer = [each for each in offered(alice, "suspend") if each.startswith("Suspend ")]
        assert offer == ["Suspend Newer", "Suspend Milk run"]


@pytest.mark.parametrize("q", ["\0", "x" * 500, "‮", "%", "suspend %(line)s", "<script>"])
def test_any_input_gets_a_response(line: Vll, nora: User, q: str) -> None:
    answer = signed_in(nora).get("/palette/", {"q": q})
    assert answer.status_code == 200
    assert "<script" not in answer.content.decode()


def test_dialog_opens_without_a_query(isp: Isp, alice: User) -> None:
    page = signed_in(alice).get("/palette/").content.decode()
    assert '<dialog class="ll-dialog ll-palette" id="palette"' in page
    assert 'role="combobox"' in page


class TestShortcuts:
    def test_shortcuts_are_a_page_and_part_of_a_page(self, isp: Isp, alice: User) -> None:
        client = signed_in(alice)
        assert "Go to Webhooks" in text(client.get("/shortcuts/"))
        part = client.get("/shortcuts/", headers={"HX-Request": "true"}).content.decode()
        assert part.strip().startswith("<dialog")

    def test_each_reader_sees_the_shortcuts_of_their_pages(self, isp: Isp, alice: User, nora: User) -> None:
        assert "Go to Alarms" in text(signed_in(nora).get("/shortcuts/"))
        assert "Go to Alarms" not in text(signed_in(alice).get("/shortcuts/"))


@pytest.mark.parametrize("address", ["/palette/", "/shortcuts/"])
def test_anonymous_reader_signs_in_first(db: Any, address: str) -> None:
    assert Client().get(address)["Location"] == f"/login/?next={address}"
