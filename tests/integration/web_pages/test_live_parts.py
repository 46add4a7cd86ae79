"""An open page receives only its changed parts, and only when their content differs."""

import pytest

from portal.accounts.models import User
from portal.inventory.models import Port
from portal.vll.models import Vll
from tests.integration.isp import Isp
from tests.integration.web_pages.browser import ask_again, part_of, signed_in, text

pytestmark = pytest.mark.django_db

PAGES = [
    ("alice", "/orders/", "orders", "lines"),
    ("alice", "/ports/?q=host-cust&after=", "ports", "ports"),
    ("nora", "/ports/", "ports", "ports"),
    ("nora", "/noc/orders/", "orders-pending-approval", "lines"),
    ("nora", "/noc/routers/{rhino}/", "router", "network lines"),
    ("nora", "/noc/customers/{dairy}/", "customer", "lines ports"),
    ("alice", "/ports/{port}/", "port", "ports lines"),
    ("alice", "/?show=all", "overview", "lines"),
    ("alice", "/vlls/{vll}/", "vll-status", "line:{vll}"),
]


@pytest.mark.parametrize(("who", "address", "part_id", "about"), PAGES)
def test_unchanged_page_is_not_sent_again(
    isp: Isp, vll: Vll, alice: User, nora: User, who: str, address: str, part_id: str, about: str
) -> None:
    browser = signed_in({"alice": alice, "nora": nora}[who])
    port = isp.ports["rhino:host-cust1"]
    ids = {"rhino": port.router_id, "port": port.pk, "dairy": port.customer_id, "vll": vll.pk}
    part = part_of(browser.get(address.format(**ids)))
    assert (part["id"], part["about"]) == (part_id, about.format(**ids))
    assert ask_again(browser, part).status_code == 204


def test_changed_part_is_sent_alone(isp: Isp, vll: Vll, alice: User) -> None:
    browser = signed_in(alice)
    before = part_of(browser.get("/ports/?q=rhino"))
    Port.objects.filter(router=isp.routers["rhino"]).update(description="in the cellar")
    Port.objects.filter(router=isp.routers["hippo"]).update(description="under the roof")
    answer = ask_again(browser, before)
    assert answer.status_code == 200
    assert answer.content.startswith(b'<div id="ports"')
    assert "in the cellar" in text(answer)
    assert "under the roof" not in text(answer), "the filter stays"
    after = part_of(answer)
    assert after["url"] == before["url"]
    assert after["seen"] != before["seen"]
    assert ask_again(browser, after).status_code == 204


def test_request_for_an_absent_part_gets_the_page(alice: User, vll: Vll) -> None:
    headers = {"HX-Request": "true", "HX-Target": "nothing", "X-Seen": "0"}
    assert "<html" in signed_in(alice).get("/orders/", headers=headers).content.decode()


def test_message_shown_once_is_not_sent_to_a_part(alice: User, vll: Vll) -> None:
    """Another window of the same user may poll between the order and the page that shows its result."""
    browser = signed_in(alice)
    part = part_of(browser.get("/orders/"))
    browser.post(f"/vlls/{vll.pk}/suspend/")
    assert ask_again(browser, part).status_code == 200
    assert "ll-note-success" in browser.get(f"/vlls/{vll.pk}/").content.decode()


def test_settled_line_reads_everything_after_a_notification(alice: User, vll: Vll) -> None:
    Vll.objects.update(oper_status="op-up")
    vll.ends.update(path_state="up")
    browser = signed_in(alice)
    part = part_of(browser.get(f"/vlls/{vll.pk}/"))
    assert "/status/?unless=" in part["url"]
    Vll.objects.update(description="Cheese run")
    assert ask_again(browser, part).status_code == 204, "the poll only requests changes"
    answer = ask_again(browser, part, headers={"X-Whole": "1"})
    assert "Cheese run" in text(answer)
    assert ask_again(browser, part_of(answer), headers={"X-Whole": "1"}).status_code == 204


def test_web_process_ends_a_stream_permanently(alice: User, vll: Vll) -> None:
    """A stream that no live process serves ends here, and the page polls."""
    answer = signed_in(alice).get(f"/live/?about=lines&about=line:{vll.pk}&age_ms=5")
    assert (answer.status_code, answer.content) == (204, b"")
