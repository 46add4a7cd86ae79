"""Lists and selects with as many rows as the NOC has: page by page, with search and filters."""

import base64
import json
import re
from typing import Any

import pytest

from portal.accounts.models import User
from portal.core import clock
from portal.inventory.models import Port, Router, Site
from portal.vll.router_operations.actions import router_lock_set
from portal.web.noc.inventory.inventory_kinds import KINDS
from portal.web.orders.port_choice import SHOWN
from portal.web.page.list_filters import PAGE_SIZE
from tests.integration.isp import GBIT, Isp
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def many(isp: Isp) -> list[Port]:
    """Create a hundred more ports of Alpine Dairy on Rhino, at a separate site."""
    bern = Site.objects.create(name="Bern")
    lynx = Router.objects.create(name="lynx", site=bern, agent_url="https://127.0.0.1:9499")
    dairy = isp.ports["rhino:host-cust1"].customer
    return Port.objects.bulk_create(
        Port(router=lynx, interface=f"eth{n:03}", customer=dairy, speed_bps=GBIT, bookable_bps=GBIT)
        for n in range(2 * PAGE_SIZE)
    )


def names(answer: Any) -> list[str]:
    return re.findall(r"(?:lynx|rhino|hippo):[\w-]+", text(answer))


@pytest.mark.parametrize("address", ["/ports/", "/noc/ports/"])
def test_every_port_is_on_one_page_in_order(many: list[Port], nora: User, address: str) -> None:
    page, seen, query = signed_in(nora), [], ""
    while True:
        answer = page.get(f"{address}{query}")
        here = list(dict.fromkeys(names(answer)))
        assert len(here) <= PAGE_SIZE
        seen += here
        following = re.search(r'href="(\?[^"]*after=[^"]+)"', answer.content.decode())
        if following is None:
            break
        query = following[1].replace("&amp;", "&")
    assert seen == sorted(seen)
    assert len(seen) == len(many) + 4


def test_search_applies_to_the_next_page(many: list[Port], nora: User) -> None:
    answer = signed_in(nora).get("/noc/ports/", {"q": "bern", "assigned": "yes"})
    assert re.search(r'href="\?q=bern&amp;assigned=yes&amp;after=', answer.content.decode())
    assert {name.partition(":")[0] for name in names(answer)} == {"lynx"}


def test_routers_are_filtered_by_site_and_state(many: list[Port], isp: Isp, nora: User) -> None:
    router_lock_set(router=isp.routers["hippo"], on=True, user=nora, now=clock.now())
    page = signed_in(nora)
    for address in ("/noc/routers/", "/routers/"):
        shown = text(page.get(address, {"status": "held"}))
        assert "hippo" in shown
        assert "rhino" not in shown
        assert "lynx" in text(page.get(address, {"site": "Bern"}))


@pytest.mark.parametrize("address", ["/ports/", "/noc/ports/"])
@pytest.mark.parametrize(
    "place",
    [
        "",
        "x",
        "[]",
        '["a", "b", "c"]',
        '{"a": 1}',
        '["\\u0000", "x", 1]',
        '["\\ud800", "x", 1]',
        '["a", "\\udfff", 1]',
        '["a", "x", "\\ud800"]',
        '["a", "x", 1e309]',
    ],
)
def test_edited_cursor_starts_from_the_top(isp: Isp, nora: User, address: str, place: str) -> None:
    after = base64.urlsafe_b64encode(place.encode()).decode() or "x"
    assert names(signed_in(nora).get(address, {"after": after}))[0] == "hippo:host-cust1"


@pytest.mark.parametrize("address", [f"/noc/{kind.slug}/" for kind in KINDS])
def test_impossible_filter_value_is_not_sent_to_the_database(isp: Isp, nora: User, address: str) -> None:
    for length in (2, 3):
        for spot in range(length):
            place = json.dumps(["\ud800" if each == spot else "1" for each in range(length)])
            after = base64.urlsafe_b64encode(place.encode()).decode()
            assert signed_in(nora).get(address, {"after": after}).status_code == 200


def test_empty_result_is_reported(isp: Isp, nora: User) -> None:
    assert "Nothing matches" in text(signed_in(nora).get("/noc/ports/", {"q": "nowhere"}))


def test_order_page_lists_few_ports_and_search_finds_the_others(
    many: list[Port], alice: User, isp: Isp
) -> None:
    page = signed_in(alice)
    first = page.get("/orders/new/").content.decode()
    assert first.count("<option value=") < 2 * SHOWN + 40
    far = many[-1]
    sent = {"a_end-search": far.interface, "a_end-port": isp.ports["hippo:host-cust1"].pk, "cir": "25"}
    found = page.post("/orders/new/", {**sent, "find": "a_end"})
    assert found.status_code == 200
    assert "Choose a port." not in text(found)
    choices = found.context["form"].a_end.fields["port"].choices
    assert [str(label) for _group, ports in choices[1:] for _value, label in ports] == [
        "Bern – lynx:eth099 – 1 Gbit/s of 1 Gbit/s free",
        f"{isp.routers['hippo'].site.name} – hippo:host-cust1 – 10 Gbit/s of 10 Gbit/s free",
    ]
    assert 'value="25"' in found.content.decode()
    options = page.get("/orders/new/ports/", {"z_end-search": "eth099", "z_end-port": far.pk})
    assert f'value="{far.pk}"' in options.content.decode()


def test_port_outside_the_select_can_be_ordered_on(many: list[Port], alice: User) -> None:
    sent = {"a_end-port": many[-1].pk, "z_end-port": many[-2].pk}
    answer = signed_in(alice).post("/orders/new/", sent)
    assert "port" not in answer.context["form"].a_end.errors


def test_few_ports_need_no_search(isp: Isp, alice: User) -> None:
    assert "Find a port" not in text(signed_in(alice).get("/orders/new/"))
