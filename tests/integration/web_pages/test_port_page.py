"""A port's page: link, VLANs, lines, traffic and losses, and who may see them."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from portal.accounts.models import User
from portal.allocation.models import PortVlanLease
from portal.core import clock
from portal.inventory.models import ObservedInterface, ObservedRouter, Port
from portal.vll.operations.reservations import reservation_make
from tests.integration.isp import Isp
from tests.integration.orders import end, order
from tests.integration.telemetry.test_losses import of_interface, store_at
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def port(isp: Isp) -> Port:
    return isp.ports["rhino:host-cust1"]


def read(user: User, port: Port, query: str = "") -> Any:
    answer = signed_in(user).get(f"/ports/{port.pk}/{query}")
    assert answer.status_code == 200
    return answer


def observe(port: Port, **seen: Any) -> None:
    ObservedInterface.objects.filter(router=port.router, name=port.interface).update(**seen)


def test_port_is_named_after_its_site(alice: User, port: Port) -> None:
    shown = text(read(alice, port))
    assert "Zürich – port host-cust1" in shown
    assert "rhino:host-cust1" in shown


def test_port_of_another_customer_is_404(charlie: User, port: Port) -> None:
    assert signed_in(charlie).get(f"/ports/{port.pk}/").status_code == 404
    assert signed_in(charlie).get(f"/api/v1/ports/{port.pk}/throughput").status_code == 404


def test_port_without_customer_is_for_the_noc(alice: User, nora: User, port: Port) -> None:
    Port.objects.filter(pk=port.pk).update(customer=None)
    assert signed_in(alice).get(f"/ports/{port.pk}/").status_code == 404
    assert "assigned to nobody" in text(read(nora, port))


def test_link_is_shown_as_the_router_reports_it(alice: User, port: Port) -> None:
    observe(port, link_since=datetime(2026, 3, 1, 22, tzinfo=UTC), speed_bps=10**9)
    shown = text(read(alice, port))
    assert "Link Up since 2026-03-01 22:00:00 UTC" in shown
    assert "10 Gbit/s The link runs at 1 Gbit/s." in shown
    observe(port, link_up=False)
    assert "Link No link since" in text(read(alice, port))
    observe(port, admin_up=False)
    assert "Link Switched off since" in text(read(alice, port))
    ObservedInterface.objects.filter(router=port.router, name=port.interface).delete()
    assert "Link Not there yet" in text(read(alice, port))


@pytest.mark.parametrize(
    "gone",
    [{"reported_at": clock.now() - timedelta(hours=1)}, {"vpp_connected": False}],
    ids=["silent", "without VPP"],
)
def test_link_of_a_router_without_reports_is_unknown(alice: User, port: Port, gone: dict[str, Any]) -> None:
    ObservedRouter.objects.filter(router=port.router).update(**gone)
    assert "Link Not reported last reported" in text(read(alice, port))


def test_used_and_free_vlans_are_shown_as_ranges(isp: Isp, alice: User, port: Port) -> None:
    order(isp, alice, cir_bps=10**6)
    ends = [end(isp, f"{name}:host-cust1", outer=101) for name in ("rhino", "hippo")]
    reservation_make(user=alice, a_end=ends[0], z_end=ends[1], cir_bps=10**6, now=clock.now())
    double = {
        f"{side}_end": end(isp, f"{name}:host-cust1", "qinq", outer=200, inner_vlan=7)
        for side, name in (("a", "rhino"), ("z", "hippo"))
    }
    order(isp, alice, cir_bps=10**6, **double)
    shown = text(read(alice, port))
    assert "2 in use 1 in use with inner VLANs; more inner VLANs are free" in shown
    assert "4 091 free" in shown.replace("\N{NO-BREAK SPACE}", " ")
    assert "Free 1–99 102–199 201–4094 In use 100–101 In use with inner VLANs 200" in shown


def test_line_on_the_whole_port_leaves_no_vlan(isp: Isp, alice: User, port: Port) -> None:
    ends = {
        f"{side}_end": end(isp, f"{name}:host-cust1", "untagged")
        for side, name in (("a", "rhino"), ("z", "hippo"))
    }
    order(isp, alice, cir_bps=10**6, **ends)
    shown = text(read(alice, port))
    assert "One line takes the whole port" in shown
    assert "<svg" not in read(alice, port).content.decode().split('id="vlan-usage"')[1].split("</section>")[0]


def test_free_range_links_to_the_order_form_with_port_and_vlan(
    isp: Isp, alice: User, bob: User, port: Port
) -> None:
    order(isp, alice, cir_bps=10**6)
    address = f"/orders/new/?port={port.pk}&amp;vlan=101"
    shown = read(alice, port).content.decode()
    assert shown.count(f'href="{address}"') == 1 + 5  # the list, and the range in each strip of the picture
    form = signed_in(alice).get(address.replace("&amp;", "&")).content.decode()
    assert re.search(rf'<option value="{port.pk}" selected>', form)
    assert re.search(r'name="a_end-outer_vlan"[^>]*value="101"', form)
    # A viewer sees no link to order.
    assert "/orders/new/" not in read(bob, port).content.decode().split("<main")[1]


@pytest.mark.parametrize(
    "query", ["?port=x", "?port=0", "?port=99999999999999999999&vlan=9", "?port=1&vlan=٣"]
)
def test_order_form_for_a_foreign_port_is_empty(isp: Isp, alice: User, query: str) -> None:
    form = signed_in(alice).get(f"/orders/new/{query}")
    assert form.status_code == 200


def test_scattered_vlans_keep_the_page_short(alice: User, port: Port) -> None:
    PortVlanLease.objects.bulk_create(
        PortVlanLease(
            port=port,
            owner=f"00000000-0000-4000-8000-{vlan:012}",
            side="a",
            keys=(vlan << 12, (vlan << 12) + 1),
            leased_at=clock.now(),
        )
        for vlan in range(2, 4000, 2)
    )
    short = read(alice, port)
    assert "and 1976 more ranges" in text(short).replace("\N{NO-BREAK SPACE}", "").replace("1,976", "1976")
    assert len(short.content) < 150_000
    assert "more ranges" not in text(read(alice, port, "?vlans=all"))


def test_lines_are_listed_with_health_and_without_ended_lines(isp: Isp, alice: User, port: Port) -> None:
    placed = order(isp, alice, description="Milk run", cir_bps=10**6)
    shown = text(read(alice, port))
    assert "Milk run Setting up It is being set up and tested." in shown
    type(placed.vll).objects.filter(pk=placed.vll_id).update(lifecycle="cancelled")
    assert "No line ends here yet" in text(read(alice, port))


def test_losses_of_the_port_are_shown_with_their_cause(isp: Isp, alice: User, port: Port) -> None:
    now = clock.now()
    assert "Lost and dropped frames" not in text(read(alice, port))
    store_at(isp, now - timedelta(hours=1), (of_interface("host-cust1", rx_packets=1000),), now=now)
    assert "None was lost or dropped here." in text(read(alice, port))
    counted = of_interface("host-cust1", rx_packets=1000, tx_packets=10, rx_errors=1, drops=20, rx_miss=2)
    store_at(isp, now - timedelta(minutes=30), (counted,), now=now)
    shown = text(read(alice, port)).replace("\N{NO-BREAK SPACE}", " ")
    assert "took in 2 000 frames and sent out 10." in shown
    assert "1 frame came in damaged." in shown
    assert "2 frames were lost because the router could not receive them fast enough." in shown
    assert "20 received frames were dropped" in shown


def test_customers_see_no_internals_of_the_router(isp: Isp, alice: User, nora: User, port: Port) -> None:
    order(isp, alice, cir_bps=10**6)
    observe(port, ip_mtu=9000, linux_cp="e0")
    words = ("IP MTU", "dot1q", "Linux", "/noc/")
    shown = read(alice, port).content.decode().split("<main")[1]
    assert [word for word in words if word in shown] == []
    for_noc = read(nora, port)
    assert "IP MTU 9000 bytes" in text(for_noc)
    assert f'href="/noc/ports/{port.pk}/change/"' in for_noc.content.decode()


def test_lists_search_and_lines_link_to_the_port(isp: Isp, alice: User, port: Port) -> None:
    placed = order(isp, alice, cir_bps=10**6)
    link = f'href="/ports/{port.pk}/"'
    for address in ("/", "/ports/", "/search/?q=host-cust1", f"/vlls/{placed.vll_id}/"):
        assert link in signed_in(alice).get(address).content.decode(), address
