"""The main task of a customer in a browser: order a line, follow its progress, see its traffic."""

import re
from collections.abc import Callable

from playwright.sync_api import expect

from devstack.stack import Stack
from tests.browser.reader import Reader

A_MINUTE_MS = 60_000


def test_a_customer_orders_a_line_follows_its_progress_and_sees_its_traffic(
    live_stack: Stack, reader: Callable[..., Reader]
) -> None:
    alice = reader(live_stack.url)
    page = alice.page
    alice.sign_in(**live_stack.loaded["customer_login"])

    page.get_by_role("link", name="Order a line").first.click()
    for side, router in (("A end", "rhino"), ("Z end", "hippo")):
        end = page.get_by_role("group", name=side)
        end.get_by_label("Port").select_option(str(live_stack.port(router, "host-cust2")))
        end.get_by_label("What it carries").select_option("qinq")
        end.get_by_label("Outer VLAN").fill("any")
        end.get_by_label("Inner VLAN").fill("30")
    page.get_by_label("Bandwidth", exact=True).fill("250")
    page.get_by_label("Name or reference").fill("Milk run")

    # The first try has a mistake: the form stays, and the summary leads to the field.
    page.get_by_label("Largest packet (MTU)").fill("9100")
    page.get_by_role("button", name="Order this line").click()
    page.get_by_role("alert").get_by_role("link").click()
    expect(page.get_by_label("Largest packet (MTU)")).to_be_focused()
    expect(page.get_by_role("group", name="Z end").get_by_label("Inner VLAN")).to_have_value("30")

    # A response that arrives while somebody types leaves the focus in the field.
    page.get_by_label("Largest packet (MTU)").fill("1500")
    expect(page.get_by_text("This line is possible.")).to_be_visible()
    expect(page.get_by_label("Largest packet (MTU)")).to_be_focused()
    page.get_by_role("button", name="Order this line").click()
    expect(page.get_by_role("heading", name="Milk run", level=1)).to_be_visible()

    status = page.locator("#vll-status")
    expect(status.locator(".ll-health").get_by_text("Up", exact=True)).to_be_visible(timeout=A_MINUTE_MS)
    expect(status.get_by_text("In place")).to_have_count(2)
    expect(status.locator(".ll-path-end").get_by_text("link up")).to_have_count(2)
    # The order is complete: the page polls only for changes of the watched path.
    expect(status).to_have_attribute("hx-get", re.compile("unless="), timeout=A_MINUTE_MS)

    graph = page.locator("#throughput")
    for end in ("a_end", "z_end"):
        expect(graph.locator(f'[data-chart="{end}"] canvas')).to_be_visible(timeout=A_MINUTE_MS)
    expect(graph.get_by_text("Simulated traffic")).to_be_visible()
    graph.get_by_text("Current, average, maximum").click()
    maximum = graph.get_by_role("row", name="A end, in").locator('[data-figure="maximum"]')
    expect(maximum).to_contain_text("bit/s", timeout=A_MINUTE_MS)
    assert int(graph.get_attribute("data-points") or 0) > 0

    page.get_by_role("link", name="Remove this line").click()
    page.get_by_role("radio", name="Immediately").check()
    page.get_by_role("checkbox", name="permanently").check()
    page.get_by_role("button", name="Remove this line").click()
    expect(status.locator(".ll-health").get_by_text("Removed")).to_be_visible(timeout=A_MINUTE_MS)
    assert alice.complaints == []


def test_a_customer_orders_without_javascript(live_stack: Stack, reader: Callable[..., Reader]) -> None:
    alice = reader(live_stack.url, java_script_enabled=False)
    page = alice.page
    alice.sign_in(**live_stack.loaded["customer_login"])
    page.get_by_role("link", name="Order a line").first.click()
    for side, router in (("A end", "rhino"), ("Z end", "hippo")):
        end = page.get_by_role("group", name=side)
        end.get_by_label("Port").select_option(str(live_stack.port(router, "host-cust2")))
        end.get_by_label("Outer VLAN").fill("any")
    page.get_by_label("Bandwidth", exact=True).fill("1")
    page.get_by_label("Name or reference").fill("By hand")
    page.get_by_role("button", name="Order this line").click()
    expect(page.get_by_role("heading", name="By hand", level=1)).to_be_visible()
