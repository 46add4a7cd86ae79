"""The orders that a line's page offers its owner: change, suspend, remove, and undo."""

import re
from datetime import timedelta
from typing import Any

import pytest

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.vll.models import Order, Vll
from portal.vll.operations.modify_line import order_modify
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import order
from tests.integration.router_answers import activate, refuse
from tests.integration.web_pages.browser import signed_in, text
from tests.integration.web_pages.test_order_page import fields, mistakes

pytestmark = pytest.mark.django_db


@pytest.fixture
def vll(isp: Isp, alice: User) -> Vll:
    placed = order(isp, alice, description="Milk run").vll
    activate(placed)
    return placed


def press(user: User, vll: Vll, button: str, **sent: Any) -> Any:
    response = signed_in(user).post(f"/vlls/{vll.pk}/{button}/", sent, follow=True)
    vll.refresh_from_db()
    return response


def shown(user: User, vll: Vll) -> str:
    return text(signed_in(user).get(f"/vlls/{vll.pk}/"))


def changed(isp: Isp, vll: Vll, **changes: Any) -> dict[str, Any]:
    """Return the change form as a browser sends it back, with some fields edited."""
    as_it_is = {"z_end__outer_vlan": "100", "cir": "1", "revision": vll.revision}
    return fields(isp, **{**as_it_is, **changes})


def test_form_contains_the_ordered_values(alice: User, vll: Vll) -> None:
    page = signed_in(alice).get(f"/vlls/{vll.pk}/change/").content.decode()
    for value in ('name="a_end-outer_vlan" value="100"', 'name="cir" value="1"', 'value="Milk run"'):
        assert value in page
    assert f'<input type="hidden" name="revision" value="{vll.revision}">' in page


def test_differing_values_are_ordered(isp: Isp, alice: User, vll: Vll) -> None:
    response = press(alice, vll, "change", **changed(isp, vll, a_end__outer_vlan="200", cir="2"))
    assert "The change is ordered." in text(response)
    assert "Change order Acknowledged" in text(response)
    assert (vll.cir_bps, vll.ends.get(side="a").outer_vlan) == (2 * GBIT, 200)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"a_end__outer_vlan": "4095"}, "id_a_end-outer_vlan"),
        ({"svc_mtu": "9000"}, "id_svc_mtu"),
        ({}, ""),
        ({"cir": "2", "revision": "77"}, ""),
    ],
)
def test_refused_change_is_shown_next_to_its_field(
    isp: Isp, alice: User, vll: Vll, changes: dict[str, str], field: str
) -> None:
    response = signed_in(alice).post(f"/vlls/{vll.pk}/change/", changed(isp, vll, **changes))
    assert response.status_code == 422
    assert list(mistakes(response)) == [field]
    assert not Order.objects.filter(action="modify").exists()


def test_description_alone_needs_no_order(isp: Isp, alice: User, vll: Vll) -> None:
    response = press(alice, vll, "change", **changed(isp, vll, description="Cheese run"))
    assert "The new description is saved." in text(response)
    assert vll.description == "Cheese run"
    assert not Order.objects.filter(action="modify").exists()


def described_in(page: Any) -> str:
    """Return the version of the description that a form shows."""
    found = re.search(r'name="described" value="(\w+)"', page.content.decode())
    assert found
    return found[1]


def test_bandwidth_can_be_changed_from_the_lines_page(alice: User, vll: Vll) -> None:
    page = signed_in(alice).get(f"/vlls/{vll.pk}/").content.decode()
    assert f'action="/vlls/{vll.pk}/bandwidth/"' in page
    assert "The new bandwidth is ordered." in text(press(alice, vll, "bandwidth", cir="2", cir_unit=GBIT))
    assert vll.cir_bps == 2 * GBIT
    assert vll.orders.filter(action="modify").count() == 1


@pytest.mark.parametrize(
    ("cir", "sentence"),
    [
        ("", "Enter a bandwidth."),
        ("fast", "“fast” is not a rate. Enter a number such as 100, or a number with its unit"),
        ("0", "0 bit/s is not between"),
        ("1", "there is nothing to order"),
        ("50", "rhino:host-cust1"),
    ],
)
def test_impossible_bandwidth_is_refused_next_to_its_field(
    alice: User, vll: Vll, cir: str, sentence: str
) -> None:
    refused = signed_in(alice).post(f"/vlls/{vll.pk}/bandwidth/", {"cir": cir, "cir_unit": GBIT})
    assert refused.status_code == 422
    assert sentence in text(refused)
    vll.refresh_from_db()
    assert vll.cir_bps == GBIT


def test_second_of_two_renames_sees_the_new_name(isp: Isp, ada: User, alice: User, vll: Vll) -> None:
    seen = described_in(signed_in(alice).get(f"/vlls/{vll.pk}/change/"))
    press(ada, vll, "change", **changed(isp, vll, described=seen, description="Cheese run"))
    renamed = changed(isp, vll, described=seen, description="Cream run", cir="2")
    refused = signed_in(alice).post(f"/vlls/{vll.pk}/change/", renamed)
    assert refused.status_code == 409
    assert "Somebody has changed this since you opened it" in text(refused)
    assert mistakes(refused)["id_description"] == "It is Cheese run now."
    assert 'value="Cream run"' in refused.content.decode()
    vll.refresh_from_db()
    assert (vll.description, vll.cir_bps) == ("Cheese run", GBIT)
    press(alice, vll, "change", **renamed | {"described": described_in(refused)})
    assert (vll.description, vll.cir_bps) == ("Cream run", 2 * GBIT)
    assert "Change name, bandwidth" in text(signed_in(alice).get("/orders/"))


def test_form_with_unedited_description_keeps_the_newer_one(
    isp: Isp, ada: User, alice: User, vll: Vll
) -> None:
    seen = described_in(signed_in(alice).get(f"/vlls/{vll.pk}/change/"))
    press(ada, vll, "change", **changed(isp, vll, described=seen, description="Cheese run"))
    press(alice, vll, "change", **changed(isp, vll, described=seen, cir="2"))
    assert (vll.description, vll.cir_bps) == ("Cheese run", 2 * GBIT)


def test_port_search_keeps_the_version_of_the_form(isp: Isp, ada: User, alice: User, vll: Vll) -> None:
    seen = described_in(signed_in(alice).get(f"/vlls/{vll.pk}/change/"))
    press(ada, vll, "change", **changed(isp, vll, described=seen, description="Cheese run"))
    for button in ("find", "check"):
        sent = changed(isp, vll, described=seen, description="Cream run") | {button: "1"}
        assert described_in(signed_in(alice).post(f"/vlls/{vll.pk}/change/", sent)) == seen


def test_line_is_suspended_and_resumed(alice: User, vll: Vll) -> None:
    question = text(signed_in(alice).get(f"/vlls/{vll.pk}/suspend/"))
    assert "Suspend Milk run? Its traffic stops within seconds." in question
    assert not vll.orders.filter(action="modify").exists()
    press(alice, vll, "suspend")
    activate(vll)
    page = shown(alice, vll)
    assert "Suspended" in page
    assert "Resume" in page
    assert page.count("Stopped Port") == 2, "a line carries nothing although its port has a link"
    press(alice, vll, "resume")
    activate(vll)
    assert vll.lifecycle == "active"


WEEK = 7 * 86_400


def test_removal_shows_until_when_it_can_be_undone(alice: User, vll: Vll, settings: Any) -> None:
    settings.LONGLINE_COOLING_OFF_S = WEEK
    question = text(signed_in(alice).get(f"/vlls/{vll.pk}/remove/"))
    until = (clock.now() + timedelta(days=7)).date().isoformat()
    assert re.search(rf"In 7 days: {until} \d\d:\d\d:\d\d UTC as agreed", question)
    confirmation = text(press(alice, vll, "remove"))
    assert f"You can undo the removal here until {until}" in confirmation
    activate(vll)
    page = shown(alice, vll)
    assert "Its traffic is stopped; its VLANs and its bandwidth are kept until then." in page
    assert "Undo the removal" in page
    press(alice, vll, "restore")
    activate(vll)
    assert vll.lifecycle == "active"


@pytest.mark.parametrize("agreed_s", [WEEK, 0])
def test_immediate_removal_needs_a_second_choice(alice: User, vll: Vll, settings: Any, agreed_s: int) -> None:
    settings.LONGLINE_COOLING_OFF_S = agreed_s
    unsure = press(alice, vll, "remove", cooling_off="0")
    assert unsure.status_code == 422
    assert "Tick this box if you mean it" in text(unsure)
    assert vll.lifecycle == "active"
    press(alice, vll, "remove", cooling_off="0", for_good="on")
    assert (vll.lifecycle, vll.wanted_present) == ("pendingTerminate", False)


def test_line_in_cooling_off_can_be_removed_immediately(alice: User, vll: Vll) -> None:
    press(alice, vll, "remove", cooling_off=str(WEEK))
    activate(vll)
    question = text(signed_in(alice).get(f"/vlls/{vll.pk}/remove/"))
    assert ("Immediately." in question, "days:" in question) == (True, False)
    press(alice, vll, "remove", cooling_off="0", for_good="on")
    assert vll.wanted_present is False


def test_open_change_is_cancelled(alice: User, vll: Vll) -> None:
    order_modify(user=alice, vll=vll, changes={"cir_bps": 5}, now=clock.now())
    assert "Cancel this order" in shown(alice, vll)
    assert "Change order Cancelling" in text(press(alice, vll, "cancel"))
    activate(vll)
    assert "There is no order left to cancel" in text(press(alice, vll, "cancel"))


def test_failed_change_is_ordered_again(alice: User, vll: Vll) -> None:
    order_modify(user=alice, vll=vll, changes={"cir_bps": 5}, now=clock.now())
    refuse(vll, "a")
    assert "Both ends are going back to the last verified configuration." in shown(alice, vll)
    activate(vll)
    assert "Order it again" in shown(alice, vll)
    press(alice, vll, "retry")
    assert vll.orders.filter(retry_of__isnull=False).count() == 1
    activate(vll)
    assert "Order it again" not in shown(alice, vll)


def test_action_that_comes_too_late_is_reported_on_the_page(alice: User, vll: Vll) -> None:
    assert "so resume is not possible" in text(press(alice, vll, "resume"))


def test_order_pending_approval_says_that_it_waits(isp: Isp, alice: User, dairy: Customer) -> None:
    Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=0)
    placed = order(isp, alice)
    page = shown(alice, placed.vll)
    assert "Pending approval" in page
    assert "is waiting for the NOC's approval" in page
    assert "A Zürich Not queried yet" in page
    assert "Waiting for" not in page
    press(alice, placed.vll, "cancel")
    placed.refresh_from_db()
    assert placed.state == "cancelled"


@pytest.mark.parametrize(
    "button", ["change", "change/check", "bandwidth", "suspend", "resume", "restore", "cancel", "retry"]
)
def test_strangers_get_404_and_viewers_403(
    alice: User, bob: User, charlie: User, vll: Vll, button: str
) -> None:
    assert signed_in(charlie).post(f"/vlls/{vll.pk}/{button}/").status_code == 404
    assert signed_in(bob).post(f"/vlls/{vll.pk}/{button}/").status_code == 403


def errors_below(response: Any) -> dict[str, str]:
    """Return the texts below each field, by the field's id in the page."""
    below = re.findall(
        r'id="([\w-]+)_error"\s+hx-swap-oob="true">(.*?)</div>', response.content.decode(), re.S
    )
    return {field: re.sub(r"<[^>]+>", "", errors).strip() for field, errors in below}


class TestServiceabilityWhileTyping:
    def check(self, user: User, sent: dict[str, Any]) -> Any:
        return signed_in(user).post("/orders/new/check/", sent, headers={"hx-request": "true"})

    def test_possible_line_shows_its_path(self, isp: Isp, alice: User, nora: User) -> None:
        content = text(self.check(alice, fields(isp)))
        assert "This line is possible. 1.5 Gbit/s , packets of up to 1500 bytes" in content.replace(
            "s,", "s ,"
        )
        assert "Packets of up to 8954 bytes would fit." in content
        assert "VXLAN" not in content
        content = text(self.check(nora, fields(isp)))
        assert "VXLAN over IPv4 ( chosen: the cheapest that fits" in content.replace("(chosen", "( chosen")
        # 1500 B, the Ethernet header without tags, and the IP, UDP and VXLAN headers.
        assert "Largest carried frame 1514 bytes Overhead of VXLAN over IPv4 36 bytes" in content
        assert "IP MTU needed 1550 bytes Path MTU 9000 bytes Spare 7450 bytes" in content
        assert not Vll.objects.exists()

    def test_error_is_shown_below_its_field_during_typing(self, isp: Isp, alice: User) -> None:
        half = self.check(alice, fields(isp, svc_mtu="9000", cir=""))
        assert errors_below(half)["id_cir"] == ""  # not written yet
        assert "Still missing: Bandwidth." in text(half)
        whole = self.check(alice, fields(isp, svc_mtu="9000"))
        assert "rhino:bb-next" in errors_below(whole)["id_svc_mtu"]
        assert "It would be refused: Largest packet (MTU)." in text(whole)
        assert text(whole).count("rhino:bb-next has") <= 1, "the reason is shown only below its field"
        assert errors_below(self.check(alice, fields(isp)))["id_svc_mtu"] == ""

    @pytest.mark.parametrize("cir", ["1.5G", "1500M", "1,500 Mbps", "1 500"])
    def test_bandwidth_may_have_a_unit(self, isp: Isp, alice: User, cir: str) -> None:
        response = self.check(alice, fields(isp, cir=cir, cir_unit=str(10**6)))
        assert "This line is possible. 1.5 Gbit/s" in text(response)
        assert errors_below(response)["id_cir"] == ""

    @pytest.mark.parametrize(
        ("cir", "below"),
        [
            ("1.000", "“1.000” can be read in two ways. Enter 1 or 1000."),
            ("50 MB/s", "“50 MB/s” can be read in two ways. Enter 50 Mbit/s or 400 Mbit/s."),
            ("fast", "“fast” is not a rate."),
        ],
    )
    def test_ambiguous_bandwidth_is_refused(self, isp: Isp, alice: User, cir: str, below: str) -> None:
        response = self.check(alice, fields(isp, cir=cir, cir_unit=str(10**6)))
        assert errors_below(response)["id_cir"].startswith(below)
        assert "To correct: Bandwidth." in text(response)
        assert "Still missing" not in text(response)

    def test_missing_bandwidth_is_refused_with_the_minimum(
        self, isp: Isp, alice: User, settings: Any
    ) -> None:
        settings.LONGLINE_MIN_CIR_BPS = 10**6
        errors = errors_below(self.check(alice, fields(isp, cir="0")))
        assert errors["id_cir"].startswith("0 bit/s is not between 1 Mbit/s and")

    def test_empty_fields_are_marked_after_the_form_was_sent(self, isp: Isp, alice: User) -> None:
        sent = fields(isp, a_end__port="", cir="", sent="1")
        below = errors_below(self.check(alice, sent))
        assert (below["id_a_end-port"], below["id_cir"]) == ("Choose a port.", "Enter a bandwidth.")
        assert below["id_svc_mtu"] == ""
        filled = errors_below(self.check(alice, sent | {"cir": "1"}))
        assert (filled["id_a_end-port"], filled["id_cir"]) == ("Choose a port.", "")

    def test_every_reason_is_listed(self, isp: Isp, alice: User, vll: Vll) -> None:
        content = text(self.check(alice, fields(isp, svc_mtu="9000")))
        assert "This cannot be ordered as it is." in content
        assert "is used by another line" in content
        assert "rhino:bb-next" in content

    def test_path_shows_the_mtu_of_each_link_and_its_detour(self, isp: Isp, alice: User) -> None:
        drawing, table = self.check(alice, fields(isp)).content.decode().split("</svg>")
        assert [name in drawing for name in isp.routers] == [True, True, False, False, False]
        assert "MTU 9000" in drawing
        assert "rhino:bb-next — hippo:bb-prev" in table
        assert table.count("after one failure") == 4

    def test_refused_line_shows_the_too_narrow_path(self, isp: Isp, alice: User) -> None:
        response = self.check(alice, fields(isp, svc_mtu="9000"))
        assert "Missing 46 bytes" in text(response)
        assert "ll-draw-line ll-draw-danger" in response.content.decode()

    def test_every_transport_shows_its_largest_packet(self, isp: Isp, nora: User) -> None:
        content = text(self.check(nora, fields(isp)))
        assert "GENEVE over IPv6 72 bytes 8914 bytes" in content

    def test_order_that_needs_approval_is_announced(self, isp: Isp, alice: User, dairy: Customer) -> None:
        sentence = "An order of this size needs the NOC's approval"
        assert sentence not in text(self.check(alice, fields(isp)))
        Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=GBIT)
        assert sentence in text(self.check(alice, fields(isp)))

    def test_impossible_mtu_is_refused_without_a_path(self, isp: Isp, alice: User) -> None:
        response = self.check(alice, fields(isp, svc_mtu="65535"))
        assert response.status_code == 200
        assert b"<svg" not in response.content

    def test_incomplete_form_shows_missing_fields(self, isp: Isp, alice: User) -> None:
        content = text(self.check(alice, fields(isp, cir="", a_end__port="")))
        assert "Still missing: A end: Port , Bandwidth" in content.replace("Port,", "Port ,")
        assert "possible" not in content

    def test_viewer_has_nothing_to_check(self, isp: Isp, bob: User) -> None:
        assert self.check(bob, fields(isp)).status_code == 403

    def test_page_checks_during_typing(self, isp: Isp, alice: User) -> None:
        page = signed_in(alice).get("/orders/new/").content.decode()
        assert 'hx-post="/orders/new/check/"' in page
        assert "delay:400ms" in page
