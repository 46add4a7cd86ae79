"""The preview of a change agrees with the result of its order."""

import random
from datetime import datetime
from typing import Any

import pytest
from django.db import transaction

from portal.accounts.models import Customer, User
from portal.allocation.errors import PortFull
from portal.allocation.models import ReservedVniRange
from portal.allocation.tunnel_leases import LAST_VNI
from portal.core import clock
from portal.core.errors import DomainError
from portal.events.models import Event
from portal.inventory.models import ObservedRouter, Port
from portal.vll.errors import EndsSwapped, NothingToChange
from portal.vll.models import Order, Vll
from portal.vll.operations.modify_line import order_modify, order_suspend
from portal.vll.quote import Quote, quote_change
from tests.integration.busy_routers import fill
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import end, order
from tests.integration.requested_tasks import requested
from tests.integration.router_answers import activate

pytestmark = pytest.mark.django_db


@pytest.fixture
def vll(isp: Isp, alice: User) -> Vll:
    placed = order(isp, alice, description="Milk run").vll
    activate(placed)
    return placed


def preview(user: User, vll: Vll, **changes: Any) -> Quote:
    vll.refresh_from_db()
    return quote_change(vll, changes, user=user, now=clock.now())


def codes(found: Quote) -> list[str]:
    return [refusal.code for refusal in found.refusals]


def test_lines_own_resources_are_free_for_it_and_nothing_is_written(isp: Isp, alice: User, vll: Vll) -> None:
    before = Order.objects.count(), Event.objects.count(), len(requested())
    found = preview(alice, vll, cir_bps=10 * GBIT)
    assert found.feasible
    assert {side: each.free_after_bps for side, each in found.ends.items()} == {"a": 0, "z": 0}
    assert "port-full" in codes(preview(alice, vll, cir_bps=10 * GBIT + 1))
    assert (Order.objects.count(), Event.objects.count(), len(requested())) == before


def test_change_without_differences_is_reported(isp: Isp, alice: User, vll: Vll) -> None:
    found = preview(alice, vll, cir_bps=GBIT, description="another name")
    assert (found.changes_nothing, codes(found), found.needs_approval) == (True, [], False)
    assert not preview(alice, vll, cir_bps=GBIT + 1).changes_nothing


def test_existing_vni_is_not_leased_again(isp: Isp, alice: User, vll: Vll) -> None:
    ReservedVniRange.objects.create(first=1, last=LAST_VNI, reason="all")
    assert preview(alice, vll, cir_bps=2 * GBIT).feasible


def test_open_order_prevents_a_change(isp: Isp, alice: User, vll: Vll) -> None:
    order_suspend(user=alice, vll=vll, now=clock.now())
    assert codes(preview(alice, vll, cir_bps=1)) == ["order-is-open"]


def test_full_port_is_reported_with_figures_of_the_whole_line(isp: Isp, alice: User, vll: Vll) -> None:
    Port.objects.filter(pk=isp.ports["rhino:host-cust1"].pk).update(bookable_bps=3 * GBIT)
    (predicted,) = preview(alice, vll, cir_bps=4 * GBIT).refusals
    with pytest.raises(PortFull) as refusal:
        order_modify(user=alice, vll=vll, changes={"cir_bps": 4 * GBIT}, now=clock.now())
    for error in (predicted, refusal.value):
        assert (error.requested_bps, error.free_bps) == (4 * GBIT, 3 * GBIT)
    assert preview(alice, vll, cir_bps=3 * GBIT).feasible


def test_ends_of_a_line_cannot_be_swapped(isp: Isp, alice: User, vll: Vll) -> None:
    a, z = (vll.ends.get(side=side).port_id for side in "az")
    swapped = {"a_end": {"port": z}, "z_end": {"port": a}}
    assert codes(preview(alice, vll, **swapped)) == ["ends-swapped"]
    with pytest.raises(EndsSwapped) as refusal:
        order_modify(user=alice, vll=vll, changes=swapped, now=clock.now())
    assert "the order of A and Z makes no difference" in refusal.value.sentence


def test_more_bandwidth_waits_for_approval_and_less_does_not(
    isp: Isp, alice: User, dairy: Customer, vll: Vll
) -> None:
    Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=0)
    alice.refresh_from_db()
    vll = Vll.objects.select_related("customer").get()
    assert preview(alice, vll, cir_bps=2 * GBIT).needs_approval
    assert not preview(alice, vll, cir_bps=1).needs_approval


def _some_change(draw: random.Random, isp: Isp) -> dict[str, Any]:
    def some_end() -> dict[str, Any]:
        tagging = draw.choice(["dot1q", "dot1q", "untagged", "qinq"])
        return {
            "port": isp.ports[draw.choice(["rhino:host-cust1", "hippo:host-cust1", *isp.ports])].pk,
            **{
                name: value
                for name, value in {
                    "tagging": end(isp, "rhino:host-cust1", tagging).tagging,
                    "outer_vlan": None if tagging == "untagged" else draw.choice([1, 100, "any", 4095]),
                    "inner_vlan": 7 if tagging == "qinq" else None,
                }.items()
                if draw.random() < 0.7
            },
        }

    every: dict[str, Any] = {
        "svc_mtu": draw.choice([1500, 68, 8942, 8943, 9000]),
        "cir_bps": draw.choice([1, 1000, GBIT, 4 * GBIT, 9 * GBIT, 0]),
        "eir_bps": draw.choice([0, 1, GBIT, 10 * GBIT]),
        "transport": draw.choice(["auto", "auto", "vxlan4", "vxlan6", "gre4", "l2xc"]),
        "a_end": some_end(),
        "z_end": some_end(),
    }
    return {name: value for name, value in every.items() if draw.random() < 0.4}


def _change(
    user: User, vll: Vll, changes: dict[str, Any], *, now: datetime, keep: bool
) -> DomainError | None:
    try:
        with transaction.atomic():
            order_modify(user=user, vll=vll, changes=changes, now=now)
            transaction.set_rollback(not keep)
    except DomainError as refusal:
        return refusal
    return None


@pytest.mark.parametrize("changes", [50, pytest.param(150, marks=pytest.mark.release)])
@pytest.mark.parametrize("state", ["plenty", "no VNI left", "few cores left"])
def test_preview_of_random_changes_agrees_with_ordering(
    isp: Isp, alice: User, vll: Vll, state: str, changes: int
) -> None:
    Port.objects.filter(pk=isp.ports["hippo:host-cust2"].pk).update(bookable_bps=3 * GBIT)
    order(isp, alice, cir_bps=5 * GBIT, a_end=end(isp, "rhino:host-cust1", outer=1),
          z_end=end(isp, "hippo:host-cust1", outer=1))  # fmt: skip
    if state == "no VNI left":
        ReservedVniRange.objects.create(first=1, last=LAST_VNI, reason="all")
    if state == "few cores left":
        fill(isp, "rhino", except_load=4 * GBIT)
        fill(isp, "hippo", except_load=3 * GBIT)
    now, draw, accepted, reasons = clock.now(), random.Random(5), 0, set()
    keys = random.Random(6)
    for _ in range(changes):
        vll.refresh_from_db()
        change = _some_change(draw, isp)
        ObservedRouter.objects.update(gre_keys=keys.random() < 0.5)
        predicted = quote_change(vll, change, user=alice, now=now)
        keep = draw.random() < 0.3
        refusal = _change(alice, vll, change, now=now, keep=keep)
        assert predicted.changes_nothing is isinstance(refusal, NothingToChange), (change, refusal)
        if predicted.changes_nothing:
            continue
        assert predicted.feasible is (refusal is None), (
            change,
            refusal,
            predicted.refusals,
        )
        if refusal is None:
            accepted += 1
            if keep:
                activate(vll)
        else:
            first = predicted.refusals[0]
            assert (refusal.code, refusal.field) == (first.code, first.field), change
            reasons.add(refusal.code)
    assert accepted > 5
    assert len(reasons) > 5, reasons


def test_line_with_automatic_transport_keeps_its_transport(isp: Isp, alice: User, vll: Vll) -> None:
    order_modify(user=alice, vll=vll, changes={"transport": "vxlan6"}, now=clock.now())
    activate(vll)
    Vll.objects.update(requested_transport="auto")
    found = preview(alice, vll, svc_mtu=1600)
    assert found.selected is not None
    assert found.selected.transport == "vxlan6"
