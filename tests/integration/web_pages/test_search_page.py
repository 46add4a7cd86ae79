import pytest
from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from portal.inventory.models import Port
from portal.vll.models import Order, Vll
from portal.web.lists_and_search import SHOWN
from tests.integration.isp import Isp
from tests.integration.orders import end, order
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def placed(isp: Isp, alice: User) -> Order:
    ends = {
        "a_end": end(isp, "rhino:host-cust1", outer=1234),
        "z_end": end(isp, "hippo:host-cust1", outer=777),
    }
    return order(isp, alice, description="Milk run", **ends)


def looked_for(user: User, q: object) -> str:
    return text(signed_in(user).get("/search/", {"q": str(q)}))


def test_line_is_found_by_any_known_value(placed: Order, alice: User) -> None:
    vll = Vll.objects.get()
    known = ("milk", vll.vni, "1234", "777", "host-cust1", "hippo", vll.pk, placed.pk)
    assert [q for q in known if "Milk run" not in looked_for(alice, q)] == []


def test_ports_and_ids_are_found_as_shown(placed: Order, alice: User) -> None:
    shown = ("rhino:host-cust1", "RHINO:host", str(placed.pk)[:8], str(placed.vll_id)[:13])
    assert [q for q in shown if "Milk run" not in looked_for(alice, q)] == []
    for q in ("rhino:host-cust1", "rhino:"):
        listed = text(signed_in(alice).get("/ports/", {"q": q}))
        assert "rhino:host-cust1" in listed, q
        assert "hippo:host-cust1" not in listed, q
    # An id needs at least as many digits as pages show; other text is no id either.
    for q in (str(placed.pk)[:7], "rhino:host-cust9", "zebra:host-cust1", ":"):
        assert "Milk run" not in looked_for(alice, q), q


@pytest.mark.parametrize("q", ["123", "nothing like it", "%", "_"])
def test_empty_result_is_reported(placed: Order, alice: User, q: str) -> None:
    shown = looked_for(alice, q)
    assert "Milk run" not in shown
    assert f"No match for “{q}”" in shown


def test_other_customer_finds_neither_lines_nor_ports(placed: Order, charlie: User) -> None:
    for q in ("milk", "host-cust1", placed.pk, placed.vll_id):
        assert f"No match for “{q}”" in looked_for(charlie, q)


def test_customer_finds_no_routers_sites_links_or_customers(isp: Isp, alice: User, nora: User) -> None:
    for q, address in (
        ("rhino", reverse("web:noc-router", args=[isp.routers["rhino"].pk])),
        ("zür", reverse("web:noc-sites-change", args=[isp.routers["rhino"].site_id])),
        ("alpine", reverse("web:noc-customer", args=[isp.ports["rhino:host-cust1"].customer_id])),
    ):
        assert address in signed_in(nora).get("/search/", {"q": q}).content.decode()
        assert address not in signed_in(alice).get("/search/", {"q": q}).content.decode()


def test_many_results_are_shown_in_part_with_a_link_to_the_rest(isp: Isp, alice: User) -> None:
    model = isp.ports["rhino:host-cust1"]
    for number in range(SHOWN + 1):
        Port.objects.create(
            router=model.router,
            interface=f"xe-{number:03}",
            customer=model.customer,
            speed_bps=1,
            bookable_bps=1,
        )
    page = signed_in(alice).get("/search/", {"q": "xe-"}).content.decode()
    assert f"xe-{SHOWN - 1:03}" in page
    assert f"xe-{SHOWN:03}" not in page
    assert 'href="/ports/?q=xe-"' in page


def test_search_text_is_escaped_and_kept_in_the_field(alice: User, db: None) -> None:
    page = signed_in(alice).get("/search/", {"q": '"><script>alert(1)</script>\0'}).content.decode()
    assert "<script>alert" not in page
    assert 'value="&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"' in page


def test_search_requires_sign_in() -> None:
    assert Client().get("/search/", {"q": "milk"}).status_code == 302
