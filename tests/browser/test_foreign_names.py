"""A stored name that reverses the direction of writing does not reverse the portal's texts.

Today such names are refused.
"""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator

from portal.accounts.models import Customer, User
from portal.vll.models import Vll, VllEnd
from tests.browser.reader import Reader
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.router_answers import activate

pytestmark = pytest.mark.django_db(transaction=True)
TURNING = "\u202e"
# The screen positions of the first and the last character of one of the portal's texts.
ENDS = """(element, text) => {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const at = walker.currentNode.data.indexOf(text);
    if (at < 0) continue;
    return [at, at + text.length - 1].map(spot => {
      const character = document.createRange();
      character.setStart(walker.currentNode, spot);
      character.setEnd(walker.currentNode, spot + 1);
      return character.getBoundingClientRect().left;
    });
  }
}"""


def reads_from_left_to_right(part: Locator, text: str) -> bool:
    first, last = part.evaluate(ENDS, text)
    return bool(first < last)


def test_texts_next_to_such_a_name_keep_their_direction(
    live_server: Any, isp: Isp, alice: User, nora: User, dairy: Customer, reader: Callable[..., Reader]
) -> None:
    placed = order(isp, alice, description="Milk run")
    activate(placed.vll)
    Customer.objects.filter(pk=dairy.pk).update(name=f"Alpine {TURNING}Dairy")
    Vll.objects.update(description=f"Milk {TURNING}run", oper_status="op-down")
    VllEnd.objects.filter(side="a").update(status="conflict", reason={"message": "VLAN 100 is taken"})
    noc = reader(live_server.url)
    noc.be_signed_in("nora")
    noc.open(f"/noc/routers/{isp.routers['rhino'].pk}/")
    assert reads_from_left_to_right(
        noc.page.locator("section[aria-labelledby=contents]"), "VLAN 100 is taken"
    )
    noc.open(f"/vlls/{placed.vll_id}/")
    assert reads_from_left_to_right(noc.page.locator("main p", has=noc.page.locator("bdi")).first, "Gbit/s")
    assert noc.complaints == []
