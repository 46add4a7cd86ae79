import re
import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.events.models import Event
from portal.inventory.models import BackboneLink, ObservedRouter
from portal.vll.models import Order, Vll
from portal.vll.operations.line_removal import order_delete
from portal.vll.operations.order_approval import order_reject
from portal.vll.router_operations.actions import router_lock_set, router_maintenance_set
from portal.web.lines.line_progress import OPER_STATUS_FOLLOWS, STEPS_FOLLOW, Progress, progress_of
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import Isp
from tests.integration.orders import end, order
from tests.integration.router_answers import activate, answer, refuse
from tests.integration.web_pages.browser import ask_again, part_of, signed_in, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def vll(isp: Isp, alice: User) -> Vll:
    return order(isp, alice, description="Milk run").vll


def page_of(user: User, vll: Vll) -> Any:
    return signed_in(user).get(f"/vlls/{vll.pk}/")


def polls(response: Any) -> bool:
    """Return whether the page polls more often than a settled page, which seldom polls."""
    intervals = re.findall(
        r'data-live="line:[^"]*" hx-trigger="live, every (\w+)"', response.content.decode()
    )
    assert len(intervals) == 1
    return bool(intervals != ["30s"])


def test_page_shows_both_ends_waiting_for_their_routers(alice: User, vll: Vll) -> None:
    shown = text(page_of(alice, vll))
    assert "Milk run" in shown
    assert "A Zürich Waiting for rhino Port rhino:host-cust1" in shown
    assert "Z Zürich Waiting for hippo Port hippo:host-cust1" in shown
    assert "packets of up to 1500 bytes" in shown
    assert "not enforced at both ends" in shown
    assert "Order accepted (add) by alice" in shown


def test_implementation_of_a_line_is_shown_only_to_the_noc(alice: User, nora: User, vll: Vll) -> None:
    activate(vll)
    shown_to_alice, shown_to_noc = text(page_of(alice, vll)), text(page_of(nora, vll))
    for made_of in (
        f"VNI {vll.vni}",
        "VXLAN over IPv4",
        "Tunnel address",
        "Policed no",
        "Requested transport",
        "History",
    ):
        assert made_of in shown_to_noc
        assert made_of not in shown_to_alice
    assert "802.1Q" not in shown_to_alice


def test_pending_end_shows_the_reason(alice: User, nora: User, vll: Vll) -> None:
    reason = {"code": "unknown_interface", "message": "VPP has no such interface", "object": "host-cust1"}
    answer(vll, "a", "verified")
    answer(vll, "z", "pending", reason=reason)
    shown = text(page_of(alice, vll))
    assert "A Zürich In place Port rhino:host-cust1" in shown
    assert "Z Zürich Pending hippo does not have this port yet (host-cust1). Port" in shown
    assert "(host-cust1). VPP has no such interface (host-cust1) Port" in text(page_of(nora, vll))


@pytest.mark.parametrize(
    "seen", [{"observed_in_sync": False}, {"drift": [{"object": "host-cust1.100", "field": "admin_up"}]}]
)
def test_end_changed_by_others_is_not_green(
    isp: Isp, alice: User, nora: User, vll: Vll, seen: dict[str, Any]
) -> None:
    activate(vll)
    vll.ends.filter(side="z").update(**seen)
    shown = text(page_of(alice, vll))
    assert "A Zürich In place Port" in shown
    assert "Z Zürich Not as ordered Port" in shown
    hippo = isp.routers["hippo"]
    assert "Not as ordered" in text(signed_in(nora).get(f"/noc/routers/{hippo.pk}/"))


@pytest.mark.parametrize(
    "gone", [{"reported_at": clock.now() - timedelta(minutes=1)}, {"vpp_connected": False}]
)
def test_last_report_of_a_silent_router_is_not_shown_as_current(
    isp: Isp, alice: User, vll: Vll, gone: dict[str, Any]
) -> None:
    activate(vll)
    vll.ends.update(link_up=True)
    for router in ("rhino", "hippo"):
        ObservedRouter.objects.update_or_create(
            router=isp.routers[router], defaults={"reported_at": clock.now(), "vpp_connected": True}
        )
    ObservedRouter.objects.filter(router=isp.routers["hippo"]).update(**gone)
    shown = page_of(alice, vll)
    assert "A Zürich In place Port rhino:host-cust1 link up" in text(shown)
    assert "Z Zürich In place As hippo last reported it. Port hippo:host-cust1 link unknown" in text(shown)


@pytest.mark.parametrize(
    ("operation", "sentence"),
    [
        (router_lock_set, "The NOC has been working on rhino since"),
        (router_maintenance_set, "rhino has been under maintenance since"),
    ],
)
def test_end_that_waits_for_the_noc_says_so(
    isp: Isp, alice: User, nora: User, vll: Vll, operation: Any, sentence: str
) -> None:
    operation(router=isp.routers["rhino"], on=True, user=nora, now=clock.now())
    shown = text(page_of(alice, vll))
    assert f"A Zürich Waiting for rhino {sentence}" in shown
    job = client(alice).get(f"/api/v1/jobs/{vll.orders.get().pk}").json()
    assert [sentence in step["reason"]["message"] if step["reason"] else None for step in job["steps"]] == [
        True,
        None,
    ]
    answer(vll, "a", "verified")
    assert sentence not in text(page_of(alice, vll))


def test_report_about_an_older_revision_counts_as_waiting(alice: User, vll: Vll) -> None:
    activate(vll)
    order_delete(user=alice, vll=vll, now=clock.now())
    shown = text(page_of(alice, vll))
    assert "Waiting for rhino" in shown
    assert "Waiting for hippo" in shown


def test_ends_of_a_rejected_order_wait_for_nothing(
    isp: Isp, alice: User, nora: User, dairy: Customer
) -> None:
    Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=1)
    alice.refresh_from_db()
    pending = order(
        isp,
        alice,
        **{f"{side}_end": end(isp, f"{name}:host-cust2") for side, name in (("a", "rhino"), ("z", "hippo"))},
    )
    order_reject(user=nora, order=pending, reason="No", now=clock.now())
    shown = text(page_of(alice, pending.vll))
    assert shown.count("Never built") == 2
    assert "Waiting for" not in shown


def test_failed_order_names_the_router_and_its_reason(alice: User, nora: User, vll: Vll) -> None:
    refuse(vll, "a")
    shown = text(page_of(alice, vll))
    taken = "rhino refused this line. Something else on rhino already uses this VLAN (host-cust1.7)."
    assert f"{taken} Both ends are being cleaned up." in shown
    assert f"{taken} VLAN 100 is taken Both ends are being cleaned up." in text(page_of(nora, vll))
    # The line's history shows the reason as a sentence too, and not as the stored code.
    history = text(page_of(nora, vll))
    assert "failure – → VLAN 100 is taken" in history
    assert "{'" not in history


def test_stranger_gets_404_for_every_address_of_a_foreign_line(charlie: User, vll: Vll) -> None:
    for path in ("", "status/", "remove/"):
        assert signed_in(charlie).get(f"/vlls/{vll.pk}/{path}").status_code == 404
    assert signed_in(charlie).post(f"/vlls/{vll.pk}/remove/").status_code == 404


def test_absent_line_is_404(alice: User) -> None:
    assert signed_in(alice).get(f"/vlls/{uuid.uuid4()}/").status_code == 404


def test_viewer_sees_the_line_and_cannot_remove_it(bob: User, alice: User, vll: Vll) -> None:
    activate(vll)
    assert "remove" not in page_of(bob, vll).content.decode().split("<main")[1]
    assert signed_in(bob).get(f"/vlls/{vll.pk}/remove/").status_code == 403
    assert signed_in(bob).post(f"/vlls/{vll.pk}/remove/").status_code == 403
    assert not Order.objects.filter(action="delete").exists()


def test_noc_sees_the_lines_customer(nora: User, vll: Vll) -> None:
    assert "Alpine Dairy · 1 Gbit/s · VXLAN over IPv4" in text(page_of(nora, vll))


def test_page_polls_while_an_order_is_open(alice: User, vll: Vll) -> None:
    assert polls(page_of(alice, vll))


def test_page_polls_for_the_oper_status_and_then_is_settled(
    alice: User, vll: Vll, monkeypatch: pytest.MonkeyPatch
) -> None:
    activate(vll)
    assert polls(page_of(alice, vll))
    later = clock.now() + OPER_STATUS_FOLLOWS
    monkeypatch.setattr(clock, "now", lambda: later)
    assert not polls(page_of(alice, vll))


def test_page_keeps_polling_when_the_order_ends_after_the_line_was_read(
    alice: User, vll: Vll, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end_the_order(seen: Vll, *, now: datetime) -> Progress:
        activate(vll)
        Vll.objects.update(oper_status="op-up")
        return progress_of(seen, now=now)

    with monkeypatch.context() as between:
        between.setattr("portal.web.lines.line_page.progress_of", end_the_order)
        early = page_of(alice, vll)
    assert "Pending active" in text(early)
    assert polls(early)
    assert not polls(page_of(alice, vll))


def test_settled_page_polls_less_often(alice: User, vll: Vll, monkeypatch: pytest.MonkeyPatch) -> None:
    client = signed_in(alice)
    page = client.get(f"/vlls/{vll.pk}/").content.decode()
    assert "every 500ms" in page
    address = re.search(r'hx-get="([^"]+)"', page)
    assert address is not None
    later = clock.now() + STEPS_FOLLOW
    monkeypatch.setattr(clock, "now", lambda: later)
    assert "every 5s" in client.get(address[1]).content.decode()
    Order.objects.update(state="held")
    assert "every 10s" in client.get(f"/vlls/{vll.pk}/").content.decode()


def test_settled_fragment_polls_rarely(alice: User, vll: Vll) -> None:
    activate(vll)
    Vll.objects.update(oper_status="op-up")
    fragment = signed_in(alice).get(f"/vlls/{vll.pk}/status/")
    assert fragment.status_code == 200
    assert not polls(fragment)


def test_poll_without_changes_changes_nothing(alice: User, vll: Vll) -> None:
    client = signed_in(alice)
    part = part_of(client.get(f"/vlls/{vll.pk}/"))
    assert ask_again(client, part).status_code == 204
    answer(vll, "a", "verified")
    fragment = ask_again(client, part)
    assert fragment.status_code == 200
    assert "In place" in text(fragment)
    assert "Provisioning started" in text(fragment)  # with the events
    assert "Add: In progress" in text(fragment)  # and with the text for screen readers


def test_removal_needs_confirmation(alice: User, vll: Vll) -> None:
    activate(vll)
    client = signed_in(alice)
    assert "Remove Milk run?" in text(client.get(f"/vlls/{vll.pk}/remove/"))
    assert not Order.objects.filter(action="delete").exists()
    confirmed = client.post(f"/vlls/{vll.pk}/remove/", {"for_good": "on"}, follow=True)
    assert confirmed.redirect_chain == [(f"/vlls/{vll.pk}/", 302)]
    assert "Pending terminate" in text(confirmed)
    assert Order.objects.get(action="delete").vll == vll


def test_line_being_set_up_can_be_removed(alice: User, vll: Vll) -> None:
    assert "Cancel this order" in text(page_of(alice, vll))
    signed_in(alice).post(f"/vlls/{vll.pk}/remove/", {"for_good": "on"})
    assert Order.objects.get(vll=vll).state == "pendingCancellation"


def test_second_removal_is_refused_with_the_reason(alice: User, vll: Vll) -> None:
    activate(vll)
    client = signed_in(alice)
    client.post(f"/vlls/{vll.pk}/remove/", {"for_good": "on"})
    again = client.post(f"/vlls/{vll.pk}/remove/", {"for_good": "on"})
    assert again.status_code == 409
    assert "is still" in text(again)
    assert Order.objects.filter(action="delete").count() == 1


def test_terminated_line_offers_no_removal_and_shows_no_status(alice: User, vll: Vll) -> None:
    activate(vll)
    order_delete(user=alice, vll=vll, now=clock.now())
    answer(vll, "a", "removed")
    answer(vll, "z", "removed")
    shown = text(page_of(alice, vll))
    assert (
        "Status in detail Lifecycle Terminated Admin status – Operational status – Configuration – "
        "Remove order" in shown
    )
    assert "Remove this line" not in shown


def test_event_of_a_newer_release_is_shown_without_its_kind(alice: User, vll: Vll) -> None:
    Event.objects.create(at=clock.now(), kind="vll.repainted", vll_id=vll.pk)
    shown = text(page_of(alice, vll))
    assert "Something else happened" in shown
    assert "vll.repainted" not in shown


def test_long_history_takes_no_more_queries(alice: User, vll: Vll) -> None:
    client = signed_in(alice)

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            client.get(f"/vlls/{vll.pk}/")
        return len(captured)

    few = queries()
    now = clock.now()
    Event.objects.bulk_create(
        Event(at=now + timedelta(seconds=n), kind="vll.op-up", vll_id=vll.pk) for n in range(200)
    )
    assert queries() == few


def test_path_is_shown_with_the_mtu_of_its_links(isp: Isp, alice: User, vll: Vll) -> None:
    shown = text(page_of(alice, vll))
    assert "rhino:bb-next — hippo:bb-prev now 9000 7450" in shown
    BackboneLink.objects.filter(pk=isp.links["rhino-hippo"].pk).update(a_ip_mtu=1540)
    shown = text(page_of(alice, vll))
    assert "Path MTU 1540 bytes Missing 10 bytes" in shown


def test_line_within_one_router_has_no_path(isp: Isp, alice: User) -> None:
    both = {
        "a_end": end(isp, "rhino:host-cust1", outer=7),
        "z_end": end(isp, "rhino:host-cust2", outer=7),
    }
    vll = order(isp, alice, **both).vll
    assert "Path MTU" not in text(page_of(alice, vll))


def test_terminated_line_has_no_path(isp: Isp, alice: User, vll: Vll) -> None:
    Vll.objects.filter(pk=vll.pk).update(lifecycle="terminated", wanted_present=False)
    assert "Path MTU" not in text(page_of(alice, vll))
