"""The size of a first visit to each main page over the real server.

The time until the largest part is painted is only printed.
"""

from collections.abc import Callable

import pytest

from devstack.stack import Stack
from tests.browser.reader import Reader

MOST_BYTES = 200_000
PAGES = ["/", "/orders/new/", "/ports/", "/orders/"]
_LARGEST_PAINT = """
() => new Promise(resolve => new PerformanceObserver(
  list => resolve(list.getEntries().at(-1).startTime)
).observe({type: "largest-contentful-paint", buffered: true}))
"""


def transferred(someone: Reader, address: str) -> int:
    """Return the transferred bytes of the page and its resources, with headers and without a cache."""
    browser = someone.page.context.new_cdp_session(someone.page)
    browser.send("Network.enable")
    browser.send("Network.setCacheDisabled", {"cacheDisabled": True})
    sizes: list[int] = []
    browser.on("Network.loadingFinished", lambda done: sizes.append(int(done["encodedDataLength"])))
    someone.page.goto(f"{someone.url}{address}", wait_until="networkidle")
    browser.detach()
    return sum(sizes)


@pytest.mark.parametrize("address", [*PAGES, "a line"])
def test_a_first_visit_transfers_few_bytes(
    live_stack: Stack, reader: Callable[..., Reader], address: str
) -> None:
    alice = reader(live_stack.url)
    alice.sign_in(**live_stack.loaded["customer_login"])
    if address == "a line":
        end = {"tagging": "dot1q", "outer_vlan": 99}
        accepted = live_stack.client("customer").order(
            description="Light",
            a_end=end | {"port": live_stack.port("rhino", "host-cust1")},
            z_end=end | {"port": live_stack.port("hippo", "host-cust1")},
            svc_mtu=1500,
            cir_bps=1_000_000,
            transport="auto",
        )
        address = f"/vlls/{accepted.vll}/"
    sent = transferred(alice, address)
    painted = alice.page.evaluate(_LARGEST_PAINT)
    print(f"{address}: {sent / 1000:.0f} kB transferred, largest contentful paint after {painted:.0f} ms")
    assert 0 < sent <= MOST_BYTES
