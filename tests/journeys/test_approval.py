"""A pending order on the NOC's page: the plans of both routers, the approval of the plans, and service."""

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import httpx
import pytest

from devstack.stack import Stack
from tests.faults.web_page import log_in
from tests.journeys.test_a_year_of_a_line import WAIT_S, Api

VLAN = 340


@pytest.fixture
def pending_order(live_stack: Stack) -> Iterator[dict[str, Any]]:
    """Yield an order of Harbour Press above the limit that needs no approval."""
    charlie, nina = Api(live_stack, "stranger"), Api(live_stack, "noc")
    customer = next(row for row in nina("GET", "/customers")["results"] if row["name"] == "Harbour Press")
    nina("PATCH", f"/customers/{customer['id']}", {"approve_up_to_bps": 1_000_000})
    ends = {
        f"{side}_end": {"port": live_stack.port(router, "host-cust3"), "tagging": "dot1q", "outer_vlan": VLAN}
        for side, router in (("a", "rhino"), ("z", "hippo"))
    }
    body = {"description": "Presses", "svc_mtu": 1500, "cir_bps": 10_000_000, "transport": "vxlan4", **ends}
    accepted = charlie("POST", "/vlls", body)
    yield accepted["order"]
    nina("PATCH", f"/customers/{customer['id']}", {"approve_up_to_bps": None})
    charlie.done("DELETE", f"/vlls/{accepted['order']['vll']}")


def plain_text(page: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", page)))


def press(browser: httpx.Client, page: str, address: str, **data: str) -> httpx.Response:
    """Submit the form for that address as a browser would, with the page's hidden fields."""
    form = next(part for part in page.split("<form")[1:] if f'action="{address}"' in part)
    hidden = dict(re.findall(r'type="hidden"\s+name="(\w+)"\s+value="([^"]*)"', form))
    headers = {"Referer": f"{browser.base_url}{address}"}
    return browser.post(address, data=hidden | data, headers=headers).raise_for_status()


def test_the_noc_sees_and_approves_both_plans_and_the_line_is_built_accordingly(
    live_stack: Stack, pending_order: dict[str, Any]
) -> None:
    charlie, nina = Api(live_stack, "stranger"), Api(live_stack, "noc")
    assert pending_order["state"] == "held"
    vll = f"/vlls/{pending_order['vll']}"
    assert charlie("GET", vll)["lifecycle"] == "pendingActive"

    browser = log_in(live_stack.url, **live_stack.loaded["noc_login"])
    address = f"/noc/orders/{pending_order['id']}/"
    page = browser.get(address).raise_for_status().text
    assert (
        "Harbour Press can order up to 1 Mbit/s without approval; this order exceeds the limit."
        in plain_text(page)
    )
    press(browser, page, f"{address}plan/")
    nina.wait(f"/orders/{pending_order['id']}/plan", state="ready")

    page = browser.get(address).raise_for_status().text
    text = plain_text(page)
    for router in ("rhino", "hippo"):
        assert f"Plan of {router}, at generation" in text
    vni = charlie("GET", vll)["vni"]
    # The router's plan names the message of VPP's binary API and the command of its CLI.
    for message, cli in (
        ("create_subif", f"create sub-interfaces host-cust3 {VLAN}"),
        ("vxlan_add_del_tunnel_v3", f"create vxlan tunnel src 10.255.0.1 dst 10.255.0.2 vni {vni}"),
        ("vxlan_add_del_tunnel_v3", f"create vxlan tunnel src 10.255.0.2 dst 10.255.0.1 vni {vni}"),
        ("sw_interface_set_l2_xconnect", "set interface l2 xconnect"),
    ):
        assert message in text
        assert cli in text
    assert "This router returned no plan" not in text
    # The plan has changed nothing on the routers.
    assert nina("GET", f"/orders/{pending_order['id']}")["state"] == "held"

    done = press(browser, page, f"{address}approve/")
    assert "Approve this order" not in plain_text(done.text)
    charlie.client.wait_completed(pending_order["id"], timeout_s=WAIT_S)
    built = charlie("GET", vll)
    assert (built["lifecycle"], built["in_sync"], built["vni"]) == ("active", True, vni)
