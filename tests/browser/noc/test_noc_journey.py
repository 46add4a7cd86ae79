"""The NOC reads the plans of an order above the limit, approves it, and the line comes into service."""

import re
from collections.abc import Callable

from playwright.sync_api import expect

from devstack.isp import ALPINE_DAIRY
from devstack.stack import Stack
from tests.browser.reader import Reader

A_MINUTE_MS = 60_000


def limit(nina: Reader, customer: str, mbit: str) -> None:
    """Set the bandwidth that the customer may order without approval, with the NOC's form."""
    nina.open("/noc/customers/")
    nina.page.get_by_role("link", name=f"Change {customer}").click()
    nina.page.locator("#id_approve_up_to_bps").fill(mbit)
    nina.page.get_by_role("button", name="Save").click()
    expect(nina.page.get_by_text("Saved.")).to_be_visible()


def test_the_noc_approves_the_plans_of_both_routers(live_stack: Stack, reader: Callable[..., Reader]) -> None:
    nina, alice = reader(live_stack.url), reader(live_stack.url)
    nina.sign_in(**live_stack.loaded["noc_login"])
    alice.sign_in(**live_stack.loaded["customer_login"])
    limit(nina, ALPINE_DAIRY, "10")
    try:
        page = alice.page
        page.get_by_role("link", name="Order a line").first.click()
        for side, router in (("A end", "rhino"), ("Z end", "hippo")):
            end = page.get_by_role("group", name=side)
            end.get_by_label("Port").select_option(str(live_stack.port(router, "host-cust2")))
            end.get_by_label("Outer VLAN").fill("any")
        page.get_by_label("Bandwidth", exact=True).fill("20")
        expect(page.get_by_text("An order of this size needs the NOC's approval")).to_be_visible()
        page.get_by_label("Name or reference").fill("Large order")
        page.get_by_role("button", name="Order this line").click()
        expect(page.get_by_text("Your order is waiting for the NOC's approval.")).to_be_visible()

        nina.open("/noc/orders/")
        nina.page.get_by_role("link", name="Large order").click()
        # The plan is made automatically, and each router's part shows its first operation.
        approve = nina.page.get_by_role("button", name="Approve this order")
        approve.wait_for(timeout=A_MINUTE_MS)
        for router in ("rhino", "hippo"):
            part = nina.page.get_by_role("region", name=f"Plan of {router}")
            expect(part.get_by_role("listitem").first).to_contain_text(re.compile(r"1\. create\s+create "))
        assert nina.accessibility_violations() == []
        approve.click()
        expect(
            nina.page.get_by_text("The order is approved; the routers are being configured.")
        ).to_be_visible()

        status = page.locator("#vll-status")
        # Alice's page refreshes once the order moves, but not while it waits for approval, so she reloads it.
        page.reload()
        expect(status.locator(".ll-health").get_by_text("Up", exact=True)).to_be_visible(timeout=A_MINUTE_MS)
        page.get_by_role("link", name="Remove this line").click()
        page.get_by_role("radio", name="Immediately").check()
        page.get_by_role("checkbox", name="permanently").check()
        page.get_by_role("button", name="Remove this line").click()
        expect(status.locator(".ll-health").get_by_text("Removed")).to_be_visible(timeout=A_MINUTE_MS)
    finally:
        limit(nina, ALPINE_DAIRY, "")
    assert alice.complaints == []
    assert nina.complaints == []
