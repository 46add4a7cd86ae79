"""Agents' reports of their routers count when somebody orders; what none has reported is declared."""

import pytest

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.inventory.models import ObservedInterface, ObservedRoute, ObservedRouter, Router, TunnelAddress
from portal.underlay.errors import (
    EncapsulationMissing,
    EndpointMissing,
    EndpointUnrouted,
    PathMtuUnknown,
    TableUnknownToAgent,
    TableUnreadable,
    TransportRefused,
)
from portal.vll.operations.order_approval import order_approve
from provisioning.intent_rows import router_rows
from tests.integration.isp import Isp
from tests.integration.lines.test_feasibility import check
from tests.integration.noc.test_noc_api import client
from tests.integration.orders import end, order

pytestmark = pytest.mark.django_db


def reports(isp: Isp, name: str, **facts: object) -> None:
    ObservedRouter.objects.filter(router=isp.routers[name]).update(**facts)


def refused(isp: Isp, user: User, kind: type[TransportRefused], **changes: object) -> TransportRefused:
    """By ordering and by asking beforehand alike."""
    with pytest.raises(kind) as refusal:
        order(isp, user, **changes)
    first = check(isp, user, **changes).refusals[0]
    assert (type(first), first.sentence) == (kind, refusal.value.sentence)
    return refusal.value


@pytest.mark.parametrize("name", ["rhino", "hippo"])
def test_a_plugin_that_a_vpp_lacks_is_not_offered(isp: Isp, alice: User, name: str) -> None:
    reports(isp, name, encapsulations=["l2xc", "geneve", "gre"])
    refusal = refused(isp, alice, EncapsulationMissing, transport="vxlan4")
    assert refusal.sentence == (
        f"The VPP of {name} does not support vxlan4: the plugin is missing."
        " These transports would carry it: GENEVE over IPv4, GENEVE over IPv6, GRE over IPv4, GRE over IPv6."
    )
    found = check(isp, alice)
    assert {o.transport.value for o in found.options if o.barred} == {"vxlan4", "vxlan6"}
    assert order(isp, alice).vll.transport == "geneve4"


def test_a_router_that_has_not_reported_counts_as_declared_and_that_is_said(isp: Isp, alice: User) -> None:
    ObservedRouter.objects.filter(router=isp.routers["rhino"]).delete()
    local = {"z_end": end(isp, "rhino:host-cust2")}
    found = check(isp, alice, **local)
    assert [(each.router.name, each.what, each.subject) for each in found.assumptions] == [
        ("rhino", "encapsulation", "l2xc")
    ]
    assert order(isp, alice, **local).vll.transport == "l2xc"
    # Across routers the MTU of its links is unknown, and that blocks.
    refused(isp, alice, PathMtuUnknown)


def test_validation_says_over_the_api_what_is_assumed_and_what_is_left(isp: Isp, alice: User) -> None:
    reports(isp, "hippo", encapsulations=None)
    ObservedRoute.objects.filter(router=isp.routers["rhino"]).delete()
    ends = {
        side: {"port": isp.ports[f"{name}:host-cust1"].pk, "tagging": "dot1q", "outer_vlan": 100}
        for side, name in (("a_end", "rhino"), ("z_end", "hippo"))
    }
    body = {"svc_mtu": 1500, "cir_bps": 10**9, "transport": "auto", **ends}
    said = client(alice).post("/api/v1/vlls/validate", body, format="json").json()
    assert said["feasible"] is True
    assert [each["about"] for each in said["assumptions"]] == ["encapsulation", "address", "route"]
    assert said["assumptions"][0]["detail"] == (
        "hippo has not reported yet; its VPP is assumed to support vxlan."
    )
    assert [each["router"] for each in said["routers"]] == ["rhino", "hippo"]
    assert (said["routers"][0]["bookable_cores"], said["routers"][0]["booked_cores"]) == (2.8, 0)
    assert (said["a_end"]["speed_bps"], said["a_end"]["free_bps"]) == (10**10, 10**10)


@pytest.mark.parametrize("transport", ["vxlan4", "geneve4"])
def test_a_loopback_has_to_be_on_the_router(isp: Isp, alice: User, transport: str) -> None:
    TunnelAddress.objects.filter(address="10.255.0.2").delete()
    refusal = refused(isp, alice, EndpointMissing, transport=transport)
    assert refusal.sentence.startswith("hippo does not have its tunnel endpoint 10.255.0.2 at the moment.")
    assert order(isp, alice).vll.transport == "vxlan6"


def test_a_loopback_has_to_be_routed_from_the_far_end(isp: Isp, alice: User) -> None:
    ObservedRoute.objects.filter(address="10.255.0.2").update(reachable=False)
    refusal = refused(isp, alice, EndpointUnrouted, transport="vxlan4")
    assert refusal.sentence.startswith(
        "rhino has no route to 10.255.0.2, the tunnel endpoint of hippo, at the moment."
    )
    assert order(isp, alice).vll.transport == "vxlan6"


def in_table(isp: Isp, name: str, table: int, **facts: object) -> None:
    Router.objects.filter(pk=isp.routers[name].pk).update(underlay_table=table)
    reports(isp, name, **facts)


def test_a_loopback_has_to_be_in_the_underlays_table(isp: Isp, alice: User) -> None:
    in_table(isp, "hippo", 10, underlay_tables=True)
    refusal = refused(isp, alice, EndpointMissing, transport="vxlan4")
    assert refusal.sentence.startswith("hippo does not have its tunnel endpoint 10.255.0.2 in table 10 at")
    TunnelAddress.objects.filter(router=isp.routers["hippo"]).update(table=10)
    line = order(isp, alice).vll
    assert line.transport == "vxlan4"
    [rhino], [hippo] = (list(router_rows(isp.routers[name]).ends) for name in ("rhino", "hippo"))
    assert "table" not in rhino.members["transport"]
    assert hippo.members["transport"]["table"] == 10
    refused(isp, alice, TableUnreadable, transport="geneve6")


def test_an_agent_of_before_there_were_tables_gets_no_tunnel_in_one(isp: Isp, alice: User) -> None:
    in_table(isp, "hippo", 10)
    TunnelAddress.objects.filter(router=isp.routers["hippo"]).update(table=10)
    assert refused(isp, alice, TableUnknownToAgent, transport="vxlan4").sentence == (
        "The underlay of hippo is in table 10, and its agent is of an earlier release that creates tunnels"
        " only in table 0. Upgrade the agent."
    )
    refused(isp, alice, TableUnknownToAgent)


def test_an_order_is_not_approved_onto_an_endpoint_that_is_gone(
    isp: Isp, alice: User, nora: User, dairy: Customer
) -> None:
    Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=0)
    pending = order(isp, alice)
    TunnelAddress.objects.filter(address="10.255.0.2").delete()
    with pytest.raises(EndpointMissing):
        order_approve(user=nora, order=pending, now=clock.now())


@pytest.mark.parametrize(("router", "interface"), [("rhino", "bb-next"), ("hippo", "bb-next")])
def test_a_link_whose_interface_a_router_does_not_have_blocks_and_alarms(
    isp: Isp, alice: User, nora: User, router: str, interface: str
) -> None:
    # The second is used only after a failure, which the planning policy looks at too.
    ObservedInterface.objects.filter(router=isp.routers[router], name=interface).delete()
    refusal = refused(isp, alice, PathMtuUnknown)
    assert [link.a.interface for link in refusal.links] == [interface]  # type: ignore[attr-defined]
    rows = client(nora).get("/api/v1/links").json()["results"]
    assert [row["a_router"] for row in rows if row["a_missing"] or row["z_missing"]] == [router]


def test_links_of_routers_without_agents_stay_as_declared(isp: Isp, alice: User, nora: User) -> None:
    assert not ObservedInterface.objects.filter(router=isp.routers["zebra"]).exists()
    order(isp, alice)
    rows = client(nora).get("/api/v1/links").json()["results"]
    assert not any(row["a_missing"] or row["z_missing"] for row in rows)
