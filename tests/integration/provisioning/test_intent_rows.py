"""The rows of an intent: one query, and exactly the ends that belong into it."""

import json

import pytest
from pytest_django import DjangoAssertNumQueries

from portal.accounts.models import User
from portal.core import clock
from portal.vll.models import Order, Vll, VllEnd
from portal.vll.operations.line_removal import order_delete
from portal.vll.operations.modify_line import order_suspend
from provisioning.intent_document import intent_for
from provisioning.intent_rows import router_rows, unconfirmed_keys
from tests.integration.isp import Isp
from tests.integration.orders import end, order
from tests.integration.router_answers import activate, answer

pytestmark = pytest.mark.django_db


def document_for(isp: Isp, router: str) -> dict[str, list[dict[str, object]]]:
    intent = intent_for(router=router, generation=1, rows=list(router_rows(isp.routers[router]).ends))
    return json.loads(intent.document())


def test_each_end_gets_its_own_and_the_far_tunnel_address(isp: Isp, alice: User) -> None:
    placed = order(isp, alice, transport="vxlan6")
    here = document_for(isp, "rhino")["present"][0]
    there = document_for(isp, "hippo")["present"][0]
    vni = placed.vll.vni
    assert here["transport"] == {
        "encapsulation": "vxlan", "family": 6, "local": "fd00:255::1", "remote": "fd00:255::2", "vni": vni,
    }  # fmt: skip
    assert there["transport"] == {
        "encapsulation": "vxlan", "family": 6, "local": "fd00:255::2", "remote": "fd00:255::1", "vni": vni,
    }  # fmt: skip
    assert here["access"]["interface"] == "host-cust1"


def test_a_local_cross_connect_has_both_ends_in_one_document(isp: Isp, alice: User) -> None:
    order(isp, alice, z_end=end(isp, "rhino:host-cust2"))
    present = document_for(isp, "rhino")["present"]
    assert [each["end"] for each in present] == ["a", "z"]
    assert {each["transport"]["encapsulation"] for each in present} == {"l2xc"}
    assert document_for(isp, "hippo")["present"] == []


def test_the_number_of_vlls_does_not_change_the_number_of_queries(
    isp: Isp, alice: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for vlan in range(100, 105):
        order(isp, alice, a_end=end(isp, "rhino:host-cust1", outer=vlan),
              z_end=end(isp, "hippo:host-cust1", outer=vlan), cir_bps=1_000_000)  # fmt: skip
    with django_assert_num_queries(1):
        assert len(list(router_rows(isp.routers["rhino"]).ends)) == 5


def test_an_ordered_removal_is_a_tombstone_until_it_is_confirmed(isp: Isp, alice: User) -> None:
    vll = order(isp, alice).vll
    activate(vll)
    order_delete(user=alice, vll=Vll.objects.get(pk=vll.pk), now=clock.now())
    document = document_for(isp, "rhino")
    assert document["present"] == []
    assert [(each["vll"], each["revision"]) for each in document["removed"]] == [(str(vll.pk), 2)]
    answer(vll, "a", "removed")
    assert document_for(isp, "rhino")["removed"] == []
    assert len(document_for(isp, "hippo")["removed"]) == 1


def test_a_terminated_vll_is_in_no_document(isp: Isp, alice: User) -> None:
    vll = order(isp, alice).vll
    activate(vll)
    order_delete(user=alice, vll=Vll.objects.get(pk=vll.pk), now=clock.now())
    answer(vll, "a", "removed")
    answer(vll, "z", "removed")
    assert Order.objects.filter(vll=vll, state="completed").count() == 2
    assert list(router_rows(isp.routers["rhino"]).ends) == []


def test_an_end_is_unsettled_until_its_router_confirms_this_very_revision(isp: Isp, alice: User) -> None:
    vll = order(isp, alice).vll
    rhino = isp.routers["rhino"]
    assert len(unconfirmed_keys(rhino)) == 1
    answer(vll, "a", "pending", reason={"code": "unknown_interface"})
    assert len(unconfirmed_keys(rhino)) == 1
    answer(vll, "a", "verified")
    assert unconfirmed_keys(rhino) == frozenset()
    VllEnd.objects.filter(vll=vll, side="a").update(status_revision=0)
    assert len(unconfirmed_keys(rhino)) == 1


def test_a_suspended_vll_is_taken_down_and_kept_built(isp: Isp, alice: User) -> None:
    vll = order(isp, alice).vll
    activate(vll)
    order_suspend(user=alice, vll=vll, now=clock.now())
    (present,) = document_for(isp, "rhino")["present"]
    assert present["admin_up"] is False
