"""Approval repeats all checks of the order, for new lines and for changes."""

from collections.abc import Callable

import pytest

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.core.errors import DomainError
from portal.inventory.models import (
    ObservedInterface,
    ObservedRoute,
    ObservedRouter,
    Port,
    Router,
    TunnelAddress,
)
from portal.underlay.errors import EncapsulationMissing, EndpointMissing
from portal.vll.errors import (
    FrameTooLargeForPort,
    LinkLossPortInUse,
    LinkLossUnsupported,
    PeakAbovePort,
    RouterHasNoAgent,
    RouterInMaintenance,
    TunnelAddressGone,
)
from portal.vll.models import Order
from portal.vll.operations.modify_line import order_modify
from portal.vll.operations.order_approval import order_approve
from tests.integration.isp import GBIT, Isp
from tests.integration.leases import sums_are_right
from tests.integration.orders import end, order
from tests.integration.router_answers import activate

pytestmark = pytest.mark.django_db
Break = Callable[[], object]
ENDS = {"a": "rhino", "z": "hippo"}

CHANGED: dict[str, tuple[type[DomainError], Break, Break]] = {
    "a port takes smaller frames": (
        FrameTooLargeForPort,
        lambda: Port.objects.filter(interface="host-cust1").update(max_frame=1521),
        lambda: Port.objects.update(max_frame=9022),
    ),
    "a port is slower": (
        PeakAbovePort,
        lambda: Port.objects.filter(interface="host-cust1").update(speed_bps=GBIT),
        lambda: Port.objects.update(speed_bps=10 * GBIT),
    ),
    "a router is under maintenance": (
        RouterInMaintenance,
        lambda: Router.objects.filter(name="hippo").update(maintenance_since=clock.now()),
        lambda: Router.objects.update(maintenance_since=None),
    ),
    "a router has no agent": (
        RouterHasNoAgent,
        lambda: Router.objects.filter(name="hippo").update(agent_url=""),
        lambda: Router.objects.filter(name="hippo").update(agent_url="https://127.0.0.1:9442"),
    ),
    "a plugin is not loaded": (
        EncapsulationMissing,
        lambda: ObservedRouter.objects.filter(router__name="hippo").update(encapsulations=["l2xc", "gre"]),
        lambda: ObservedRouter.objects.update(encapsulations=["l2xc", "vxlan", "geneve", "gre"]),
    ),
    "a loopback is not on its router": (
        EndpointMissing,
        lambda: TunnelAddress.objects.filter(address="10.255.0.2").delete(),
        lambda: TunnelAddress.objects.create(router=Router.objects.get(name="hippo"), address="10.255.0.2"),
    ),
}


@pytest.fixture(params=["add", "modify"])
def pending(request: pytest.FixtureRequest, isp: Isp, alice: User, dairy: Customer) -> Order:
    """Return an order of 2 Gbit/s, 1504-byte packets over VXLAN, IPv4: 1522-byte frames at the ports."""
    if request.param == "add":
        Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=GBIT)
        return order(isp, alice, cir_bps=2 * GBIT, svc_mtu=1504, transport="vxlan4")
    vll = order(isp, alice, svc_mtu=1400, transport="vxlan6").vll
    activate(vll)
    Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=GBIT)
    changes = {"cir_bps": 2 * GBIT, "svc_mtu": 1504, "transport": "vxlan4"}
    return order_modify(user=alice, vll=vll, changes=changes, now=clock.now())


@pytest.mark.parametrize("change", CHANGED)
def test_order_that_would_be_refused_now_cannot_be_approved(nora: User, pending: Order, change: str) -> None:
    assert pending.state == "held"
    refusal, apply_change, revert = CHANGED[change]
    apply_change()
    with pytest.raises(refusal):
        order_approve(user=nora, order=pending, now=clock.now())
    pending.refresh_from_db()
    assert (pending.state, pending.failure) == ("held", None)
    revert()
    assert order_approve(user=nora, order=pending, now=clock.now()).state == "inProgress"
    activate(pending.vll)
    pending.refresh_from_db()
    assert pending.state == "completed"
    assert sums_are_right()


def test_tunnel_address_must_still_belong_to_the_router(nora: User, pending: Order) -> None:
    Router.objects.filter(name="hippo").update(loopback4="10.255.9.2")
    hippo = Router.objects.get(name="hippo")
    TunnelAddress.objects.create(router=hippo, address="10.255.9.2")
    with pytest.raises(TunnelAddressGone) as refusal:
        order_approve(user=nora, order=pending, now=clock.now())
    assert (refusal.value.field, refusal.value.address) == ("z_end", "10.255.0.2")
    assert "reject the order" in refusal.value.sentence


@pytest.mark.parametrize("gone", ["address", "route"])
def test_addresses_of_a_gre_pair_must_still_belong_to_the_routers(
    isp: Isp, alice: User, nora: User, dairy: Customer, gone: str
) -> None:
    Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=0)
    pending = order(isp, alice, transport="gre4")
    if gone == "address":
        TunnelAddress.objects.filter(address="10.255.0.1").delete()
    else:
        ObservedRoute.objects.filter(address="10.255.0.1").update(reachable=False)
    with pytest.raises(TunnelAddressGone) as refusal:
        order_approve(user=nora, order=pending, now=clock.now())
    assert (refusal.value.field, refusal.value.router) == ("a_end", "rhino")


@pytest.mark.parametrize("refusal", [LinkLossUnsupported, LinkLossPortInUse])
@pytest.mark.parametrize("so_far", [None, False, True], ids=["new line", "line without it", "line with it"])
def test_new_link_loss_forwarding_is_checked_again(
    isp: Isp, alice: User, nora: User, dairy: Customer, so_far: bool | None, refusal: type[DomainError]
) -> None:
    ObservedRouter.objects.update(link_loss_forwarding=True)
    whole = {f"{side}_end": end(isp, f"{name}:host-cust1", "untagged") for side, name in ENDS.items()}
    if so_far is not None:
        vll = order(isp, alice, **whole, link_loss_forwarding=so_far).vll
        activate(vll)
    Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=GBIT)
    if so_far is None:
        pending = order(isp, alice, **whole, link_loss_forwarding=True, cir_bps=2 * GBIT)
    else:
        changes = {"cir_bps": 2 * GBIT, "link_loss_forwarding": True}
        pending = order_modify(user=alice, vll=vll, changes=changes, now=clock.now())
    assert pending.state == "held"
    if refusal is LinkLossUnsupported:
        ObservedRouter.objects.filter(router=isp.routers["hippo"]).update(link_loss_forwarding=False)
    else:
        other = {"name": "host-cust1.7", "admin_up": True, "link_up": True}
        ObservedInterface.objects.create(router=isp.routers["rhino"], **other)
    if not so_far:
        with pytest.raises(refusal):
            order_approve(user=nora, order=pending, now=clock.now())
        ObservedInterface.objects.filter(name="host-cust1.7").delete()
        ObservedRouter.objects.update(link_loss_forwarding=True)
    assert order_approve(user=nora, order=pending, now=clock.now()).state == "inProgress"
