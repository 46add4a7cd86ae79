"""A name of 100 letters without a space stays in its column, and the other columns stay visible."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page

from portal.accounts.models import Customer, User
from portal.accounts.tokens import token_create
from portal.core import clock
from portal.inventory.models import Port, Site
from portal.notifications.models import Delivery, Webhook
from portal.vll.models import Vll
from tests.browser.reader import Reader
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.router_answers import activate

pytestmark = pytest.mark.django_db(transaction=True)
# Parts that the reader has to scroll to or cannot see: a page or box that is too wide, and text that is cut
# or leaves its box.
CUT = """() => {
  const named = (element) => `${element.tagName.toLowerCase()}.${element.className}`.slice(0, 80);
  const visible = (selector) => [...document.querySelectorAll(selector)].filter((element) =>
    element.checkVisibility() && !element.closest("svg, [popover], .ll-group-row, .visually-hidden"));
  const wide = visible(".card, .ll-table, .ll-page, main section, main form, dl, ul, header, footer, nav")
    .filter((element) => element.scrollWidth > element.clientWidth + 1)
    .map((element) => `${named(element)}: ${element.scrollWidth} of ${element.clientWidth}`);
  const outside = visible("main *")
    .filter((element) => element.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .map((element) => `${named(element)} ends outside`);
  return [...new Set([...wide, ...outside])].slice(0, 5);
}"""


@pytest.fixture
def lines(isp: Isp, dairy: Customer, alice: User, ada: User, nina: User) -> list[Vll]:
    """Return two lines; all objects around them have names of the maximum length."""
    found = [order(isp, alice).vll]
    activate(found[0])
    Customer.objects.update(name="C" * 100)
    Site.objects.update(name="S" * 100)
    Port.objects.update(description="P" * 100)
    Vll.objects.update(description="L" * 100)
    User.objects.filter(username="bob").update(username="b" * 150)
    nina.username = "n" * 150
    nina.save()
    alice.first_name = "F" * 100
    alice.save()
    token_create(user=ada, name="T" * 100, scopes=["read"], now=clock.now())
    hook = Webhook.objects.create(
        customer=dairy,
        url="https://hooks.example.net/" + "u" * 400,
        description="W" * 100,
        secret="s",
        secret_set_at=clock.now(),
        created_at=clock.now(),
    )
    Delivery.objects.create(
        webhook=hook,
        type="vll.down",
        body='{"x":"' + "B" * 500 + '"}',
        created_at=clock.now(),
        next_try_at=clock.now(),
    )
    return found


def cut(page: Page) -> list[str]:
    found: list[str] = page.evaluate(CUT)
    return found


@pytest.mark.parametrize("width", [1280, 390])
def test_long_names_hide_nothing(
    live_server: Any,
    isp: Isp,
    dairy: Customer,
    lines: list[Vll],
    bob: User,
    nora: User,
    reader: Callable[..., Reader],
    width: int,
) -> None:
    (line,), hook = lines, Webhook.objects.get()
    port, rhino = isp.ports["rhino:host-cust1"], isp.routers["rhino"]
    team, customer, router = f"/team/{dairy.pk}/", f"/noc/customers/{dairy.pk}/", f"/noc/routers/{rhino.pk}/"
    at = f"/vlls/{line.pk}/"
    own = f"/ {at} {at}remove/ {at}change/ /ports/ /ports/{port.pk}/ /orders/ /orders/new/ /team/ /account/"
    admin = f"/account/tokens/ /webhooks/ /webhooks/{hook.pk}/ {team}"
    inventory = "/noc/customers/ /noc/sites/ /noc/routers/ /noc/ports/ /noc/links/"
    network = f"/noc/ /noc/staff/ /noc/people/{bob.pk}/ /noc/audit/ /noc/map/ /noc/pools/ {customer} {router}"
    pages = {
        "alice": [*own.split(), "/search/?q=LLLL"],
        "ada": admin.split(),
        "nora": [*f"/ {at} /ports/ /orders/ /routers/ {inventory} {network}".split(), "/search/?q=CCCC"],
    }
    wrong = {}
    for who, paths in pages.items():
        person = reader(live_server.url, viewport={"width": width, "height": 900}, reduced_motion="reduce")
        person.be_signed_in(who)
        for path in paths:
            person.open(path)
            if found := cut(person.page):
                wrong[f"{who} {path}"] = found
    assert wrong == {}, "\n".join(f"{at}: {found}" for at, found in wrong.items())
