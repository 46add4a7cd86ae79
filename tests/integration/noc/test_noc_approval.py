"""Approval of a pending order: the NOC reads the plan of both routers and approves exactly that plan."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.inventory.models import BackboneLink, Router
from portal.vll.errors import NotForYouToDecide, PlanIsStale
from portal.vll.models import Order, PlanResult
from portal.vll.operations.modify_line import order_modify
from portal.vll.operations.order_approval import (
    GIVEN_UP,
    PlanState,
    order_approve,
    order_reject,
    plan_request,
    state_of,
)
from provisioning.plan_preview import plan_make
from tests.integration.api.test_api_v1 import client
from tests.integration.certificates import certificates
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import end, order
from tests.integration.requested_tasks import requested
from tests.integration.router_answers import activate
from tests.integration.stand_in_agent import StandInAgent, serving
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def agents(isp: Isp, dairy: Customer) -> Iterator[None]:
    """Run an agent for both routers; Alpine Dairy orders up to 1 Gbit/s without approval."""
    Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=GBIT)
    dairy.refresh_from_db()
    folder = certificates()
    with (
        serving(StandInAgent("rhino"), pki=folder) as rhino,
        serving(StandInAgent("hippo"), pki=folder) as hippo,
    ):
        for agent in (rhino, hippo):
            Router.objects.filter(name=agent.router).update(agent_url=agent.url)
        yield


@pytest.fixture
def pending(isp: Isp, alice: User) -> Order:
    return order(isp, alice, cir_bps=2 * GBIT, description="Milk run")


def planned(nora: User, pending: Order) -> PlanResult:
    """Return a plan, requested and made as a worker makes it."""
    plan = plan_request(user=nora, order=pending, now=clock.now())
    plan_make(plan.pk)
    plan.refresh_from_db()
    return plan


def send_the_same_intent_again() -> None:
    Router.objects.filter(name="hippo").update(generation=F("generation") + 1)


def order_another_line(isp: Isp, nora: User) -> None:
    ends = {
        "a_end": end(isp, "rhino:host-cust2", outer=77),
        "z_end": end(isp, "hippo:host-cust2", outer=77),
    }
    order(isp, nora, cir_bps=1000, description="Another", **ends)


def test_lines_page_links_only_the_noc_to_the_decision(pending: Order, nora: User, alice: User) -> None:
    address = f'href="/noc/orders/{pending.pk}/"'
    page = f"/vlls/{pending.vll_id}/"
    assert address in signed_in(nora).get(page).content.decode()
    assert address not in signed_in(alice).get(page).content.decode()


def test_navigation_counts_and_list_names_pending_approvals(pending: Order, nora: User) -> None:
    page = signed_in(nora)
    assert "Orders pending approval 1 1 waiting" in text(page.get("/"))
    listed = text(page.get("/noc/orders/"))
    assert "Orders pending approval 1 1 waiting" in listed
    assert "Milk run Alpine Dairy Add 2 Gbit/s" in listed


def test_page_shows_the_request_and_the_reason_for_approval(pending: Order, nora: User) -> None:
    shown = text(signed_in(nora).get(f"/noc/orders/{pending.pk}/"))
    assert "Alpine Dairy can order up to 1 Gbit/s without approval; this order exceeds the limit." in shown
    assert "Bandwidth (CIR) 2 Gbit/s" in shown
    assert "A end Port rhino:host-cust1" in shown
    assert "IP MTU needed 1550 bytes Path MTU 9000 bytes Spare 7450 bytes" in shown
    assert "A: booked on rhino:host-cust1, this order included 2 Gbit/s of 10 Gbit/s" in shown
    assert "Approve this order" not in shown


@pytest.mark.parametrize("closed", [True, False])
def test_approver_sees_that_the_orderer_lost_the_right_to_order(
    pending: Order, nora: User, alice: User, closed: bool
) -> None:
    """The order belongs to the customer and the NOC decides, so the page has to say this."""
    address, note = f"/noc/orders/{pending.pk}/", "alice may no longer order for Alpine Dairy"
    assert note not in text(signed_in(nora).get(address))
    if closed:
        User.objects.filter(pk=alice.pk).update(is_active=False)
    else:
        alice.memberships.update(role="viewer")
    assert note in text(signed_in(nora).get(address))


@pytest.mark.parametrize("why", ["closed", "another role", "retired customer", "gone"])
def test_api_shows_that_the_orderer_lost_the_right_to_order(
    pending: Order, isp: Isp, nora: User, alice: User, why: str
) -> None:
    api, address = client(nora), f"/api/v1/orders/{pending.pk}"

    def shown() -> list[bool | None]:
        listed = {
            each["id"]: each["orderer_may_order"] for each in api.get("/api/v1/orders").json()["results"]
        }
        return [api.get(address).json()["orderer_may_order"], listed[str(pending.pk)]]

    assert shown() == [True, True]
    if why == "closed":
        User.objects.filter(pk=alice.pk).update(is_active=False)
    elif why == "another role":
        alice.memberships.update(role="viewer")
    elif why == "retired customer":
        Customer.objects.filter(pk=pending.customer_id).update(retired_at=clock.now())
    else:
        Order.objects.filter(pk=pending.pk).update(ordered_by="somebody-else")
    assert shown() == [False, False]
    order_reject(user=nora, order=pending, reason="order again", now=clock.now())
    assert shown() == [None, None], "nothing is shown for a decided order"


def test_list_of_orders_reads_all_orderers_together(
    pending: Order, isp: Isp, nora: User, alice: User
) -> None:
    api = client(nora)

    def statements() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert api.get("/api/v1/orders").status_code == 200
        return len(captured)

    statements()
    before = statements()
    for outer in (200, 300):
        ends = {
            f"{side}_end": end(isp, f"{name}:host-cust1", outer=outer)
            for side, name in (("a", "rhino"), ("z", "hippo"))
        }
        assert order(isp, alice, cir_bps=2 * GBIT, **ends).state == "held"
    assert statements() == before


def test_change_shows_only_differences(isp: Isp, alice: User, nora: User) -> None:
    vll = order(isp, alice).vll
    activate(vll)
    changed = order_modify(user=alice, vll=vll, changes={"cir_bps": 2 * GBIT}, now=clock.now())
    shown = text(signed_in(nora).get(f"/noc/orders/{changed.pk}/"))
    assert "Bandwidth (CIR) 1 Gbit/s 2 Gbit/s" in shown
    assert "Outer VLAN" not in shown


def test_requested_plan_is_made_by_a_worker_and_shown(pending: Order, nora: User) -> None:
    page, address = signed_in(nora), f"/noc/orders/{pending.pk}/"
    assert page.post(f"{address}plan/").status_code == 302
    assert [task for task, _ in requested()] == ["provisioning.plan_order"]
    assert page.get(f"{address}plan/").status_code == 204
    plan_make(PlanResult.objects.get().pk)
    shown = text(page.get(f"{address}plan/"))
    assert "Plan of rhino, at generation 0" in shown
    assert f"transport.vni A – {pending.vll.vni} " in shown
    assert "1. create create sub-interfaces host-cust1 it is missing create_subif" in shown
    # The A end's router comes first.
    assert shown.index("Plan of rhino") < shown.index("Plan of hippo")
    assert "Approve this order" in shown


def test_approval_of_the_shown_plan_releases_the_order(pending: Order, nora: User) -> None:
    plan = planned(nora, pending)
    response = signed_in(nora).post(f"/noc/orders/{pending.pk}/approve/", {"plan": str(plan.pk)})
    assert response.status_code == 302
    pending.refresh_from_db()
    assert pending.state == "inProgress"


def test_plan_without_one_router_cannot_be_approved(pending: Order, nora: User) -> None:
    Router.objects.filter(name="hippo").update(agent_url="https://127.0.0.1:1")
    plan = planned(nora, pending)
    response = signed_in(nora).post(f"/noc/orders/{pending.pk}/approve/", {"plan": str(plan.pk)})
    assert response.status_code == 409
    assert "hippo sent no plan" in text(response)
    pending.refresh_from_db()
    assert pending.state == "held"


def test_page_offers_a_new_plan_where_a_router_did_not_answer(pending: Order, nora: User) -> None:
    Router.objects.filter(name="hippo").update(agent_url="https://127.0.0.1:1")
    planned(nora, pending)
    shown = text(signed_in(nora).get(f"/noc/orders/{pending.pk}/"))
    assert "No plan came from hippo, so there is nothing to approve yet." in shown
    assert "Plan again" in shown
    assert "Approve this order" not in shown


def test_plan_refused_by_a_router_shows_a_warning_next_to_approval(pending: Order, nora: User) -> None:
    plan = planned(nora, pending)
    reason = {
        "code": "vlan-taken",
        "message": "VLAN 100 belongs to somebody else",
        "object": "host-cust1.100",
    }
    plan.routers[1]["ends"] = [{"end": "a", "status": "conflict", "reason": reason}]
    plan.save()
    shown = text(signed_in(nora).get(f"/noc/orders/{pending.pk}/"))
    assert "End A would be in conflict: VLAN 100 belongs to somebody else (host-cust1.100)" in shown
    assert "At the moment, rhino would not set up its end." in shown


def test_stale_plan_is_refused_and_shown_as_stale(isp: Isp, pending: Order, nora: User) -> None:
    plan = planned(nora, pending)
    send_the_same_intent_again()
    assert state_of(plan, now=clock.now()) == PlanState.READY
    order_another_line(isp, nora)
    response = signed_in(nora).post(f"/noc/orders/{pending.pk}/approve/", {"plan": str(plan.pk)})
    assert response.status_code == 409
    assert "A router has changed since this plan was made" in text(response)
    assert "Approve this order" not in text(response)
    pending.refresh_from_db()
    assert pending.state == "held"


@pytest.mark.parametrize("of", ["nothing", "another order", "an unfinished one"])
def test_only_a_finished_plan_of_this_order_counts(
    isp: Isp, alice: User, pending: Order, nora: User, of: str
) -> None:
    ends = {"a_end": end(isp, "rhino:host-cust2"), "z_end": end(isp, "hippo:host-cust2")}
    other = order(isp, alice, cir_bps=2 * GBIT, **ends)
    plan = {
        "nothing": uuid4,
        "another order": lambda: planned(nora, other).pk,
        "an unfinished one": lambda: plan_request(user=nora, order=pending, now=clock.now()).pk,
    }[of]()
    with pytest.raises(PlanIsStale):
        order_approve(user=nora, order=pending, now=clock.now(), plan=plan)


def test_page_says_that_the_underlay_no_longer_carries_the_line(pending: Order, nora: User) -> None:
    BackboneLink.objects.update(a_ip_mtu=1500, z_ip_mtu=1500)
    plan = planned(nora, pending)
    assert plan.refusal["code"] == "path-too-narrow"
    shown = text(signed_in(nora).get(f"/noc/orders/{pending.pk}/"))
    assert "At the moment this order cannot be approved." in shown
    assert "IP MTU of 1500 bytes" in shown
    assert "Approve this order" not in shown


def test_lost_plan_can_be_requested_again(pending: Order, nora: User) -> None:
    lost = plan_request(user=nora, order=pending, now=clock.now() - GIVEN_UP)
    assert state_of(lost, now=clock.now()) == "lost"
    assert plan_request(user=nora, order=pending, now=clock.now()).pk != lost.pk


def test_plan_in_progress_is_not_requested_twice(pending: Order, nora: User) -> None:
    now = clock.now()
    assert (
        plan_request(user=nora, order=pending, now=now).pk
        == plan_request(user=nora, order=pending, now=now).pk
    )
    assert len(requested()) == 1


def test_rejection_needs_a_reason_that_the_customer_reads(pending: Order, nora: User, alice: User) -> None:
    page, address = signed_in(nora), f"/noc/orders/{pending.pk}/reject/"
    assert page.post(address, {"reason": " "}).status_code == 422
    assert page.post(address, {"reason": "No capacity before May"}).status_code == 302
    assert "No capacity before May" in text(signed_in(alice).get(f"/vlls/{pending.vll_id}/"))


def test_decision_of_another_user_is_reported(pending: Order, nora: User) -> None:
    page, plan = signed_in(nora), planned(nora, pending)
    order_approve(user=nora, order=pending, now=clock.now())
    response = page.post(f"/noc/orders/{pending.pk}/approve/", {"plan": str(plan.pk)})
    assert response.status_code == 409
    assert "Nothing is left to approve here." in text(response)


def test_only_the_noc_plans(pending: Order, alice: User) -> None:
    with pytest.raises(NotForYouToDecide):
        plan_request(user=alice, order=pending, now=clock.now())
    assert signed_in(alice).get(f"/noc/orders/{pending.pk}/").status_code == 403


def test_api_plans_and_approves(isp: Isp, pending: Order, nora: User, alice: User) -> None:
    api, address = client(nora), f"/api/v1/orders/{pending.pk}"
    assert api.get(f"{address}/plan").status_code == 404
    requested = api.post(f"{address}/plan")
    assert (requested.status_code, requested.json()["state"]) == (202, "underWay")
    plan_make(PlanResult.objects.get().pk)
    made = api.get(requested["Location"]).json()
    assert (made["state"], [part["router"] for part in made["routers"]]) == ("ready", ["hippo", "rhino"])
    assert made["routers"][1]["operations"][0]["cli"] == "create sub-interfaces host-cust1"
    assert client(alice).get(f"{address}/plan").status_code == 403
    order_another_line(isp, nora)
    assert api.get(f"{address}/plan").json()["state"] == "stale"
    refused = api.post(f"{address}/approve", {"plan": made["id"]}, format="json")
    assert (refused.status_code, refused.json()["type"]) == (
        409,
        "http://testserver/api/docs/errors/#plan-is-stale",
    )
    assert api.post(f"{address}/approve").status_code == 202
