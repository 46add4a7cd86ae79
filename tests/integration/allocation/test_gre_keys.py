"""GRE lines with one pair of loopbacks, separated by keys, and routers that gain or lose support for keys."""

import json
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from portal.accounts.models import Customer, User
from portal.allocation import tunnel_leases
from portal.allocation.errors import GreKeysExhausted, GrePairsExhausted
from portal.allocation.models import GreKeyLease, GrePairLease
from portal.core import clock
from portal.core.environment import ActivationTestMode
from portal.inventory.models import ObservedRouter, TunnelAddress
from portal.netbox_sync.line_export import l2vpn_fields
from portal.telemetry.observation_ingest import observation_take
from portal.underlay.current_topology import topology_when_all_report
from portal.underlay.errors import EndpointMissing, PathTooNarrow
from portal.vll.errors import GreKeysGone
from portal.vll.line_spec import LineSpec
from portal.vll.lines_not_carried import lines_off_the_path
from portal.vll.models import Vll
from portal.vll.operations.line_removal import order_delete
from portal.vll.operations.order_approval import order_approve, order_reject
from portal.vll.quote import quote
from provisioning.intent_generations import router_intent
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import GBIT, Isp, build_isp
from tests.integration.leases import owners, sums_are_right
from tests.integration.observed_reports import observed_report
from tests.integration.orders import end, modify, order
from tests.integration.router_answers import activate, answer, left, refuse
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
LOOPBACKS = {"10.255.0.1", "10.255.0.2"}


@pytest.fixture
def isp(dairy: Customer) -> Isp:
    """Return an ISP with a third router, so that lines can move."""
    return build_isp(owner=dairy, agents=("rhino", "hippo", "zebra"))


@pytest.fixture
def keyed(isp: Isp) -> Isp:
    """Let the VPPs of all routers support GRE keys."""
    ObservedRouter.objects.update(gre_keys=True)
    return isp


def lose_keys(*names: str) -> None:
    """Store that the VPPs of these routers no longer support GRE keys."""
    ObservedRouter.objects.filter(router__name__in=names).update(gre_keys=False)


def line(isp: Isp, user: User, number: int = 1, **changes: Any) -> Vll:
    """Return a GRE line between Rhino and Hippo, in service."""
    ends = {
        "a_end": end(isp, "rhino:host-cust1", outer=100 + number),
        "z_end": end(isp, "hippo:host-cust1", outer=100 + number),
    }
    vll: Vll = order(isp, user, **{**ends, "cir_bps": GBIT // 100, "transport": "gre4", **changes}).vll
    activate(vll)
    return vll


def addresses(vll: Vll) -> set[str]:
    return {str(end.tunnel_address) for end in vll.ends.all()}


def transports(isp: Isp, router: str) -> list[dict[str, Any]]:
    document = json.loads(router_intent(isp.routers[router], generation=1).document())
    return [end["transport"] for end in document["present"]]


def test_one_pair_of_loopbacks_serves_all_lines(keyed: Isp, alice: User) -> None:
    lines = [line(keyed, alice, number) for number in range(20)]
    assert all(addresses(each) == LOOPBACKS for each in lines)
    keys = {each.gre_key for each in lines}
    assert len(keys) == 20
    assert all(each.vni is None for each in lines)
    assert {lease.gre_key: lease.owner for lease in GreKeyLease.objects.all()} == {
        each.gre_key: each.pk for each in lines
    }
    assert not GrePairLease.objects.exists()
    for router in ("rhino", "hippo"):
        assert {sent["gre_key"] for sent in transports(keyed, router)} == keys


@pytest.mark.parametrize("old", [("rhino",), ("hippo",), ("rhino", "hippo")])
def test_router_without_keys_needs_a_leased_pair(keyed: Isp, alice: User, old: tuple[str, ...]) -> None:
    lose_keys(*old)
    vll = line(keyed, alice)
    assert (vll.gre_key, addresses(vll)) == (None, LOOPBACKS)
    assert GrePairLease.objects.get().owner == vll.pk
    assert "gre_key" not in transports(keyed, "rhino")[0]
    with pytest.raises(GrePairsExhausted):
        line(keyed, alice, 2)


def test_keyed_tunnel_needs_its_loopbacks(keyed: Isp, alice: User) -> None:
    TunnelAddress.objects.filter(address="10.255.0.2").delete()
    with pytest.raises(EndpointMissing):
        line(keyed, alice)


class TestMtu:
    """Links carry 9,000 bytes, by the exact policy: frames of 8,972 bytes with a key, of 8,976 without."""

    @pytest.fixture(autouse=True)
    def exact(self, settings: Any) -> None:
        settings.LONGLINE_MTU_POLICY = "exact"

    def whole_ports(self, isp: Isp) -> dict[str, Any]:
        """Return two whole ports: with two customer tags, a frame has 22 bytes more than a packet."""
        return {
            "a_end": end(isp, "rhino:host-cust1", "untagged"),
            "z_end": end(isp, "hippo:host-cust1", "untagged"),
        }

    @pytest.mark.parametrize(("has_keys", "largest"), [(True, 8950), (False, 8954)])
    def test_key_counts_for_the_mtu(self, isp: Isp, alice: User, has_keys: bool, largest: int) -> None:
        ObservedRouter.objects.update(gre_keys=has_keys)
        with pytest.raises(PathTooNarrow) as refusal:
            line(isp, alice, svc_mtu=largest + 1, **self.whole_ports(isp))
        assert (refusal.value.required, refusal.value.available) == (9001, 9000)
        vll = line(isp, alice, svc_mtu=largest, **self.whole_ports(isp))
        assert ((vll.gre_key is not None), vll.frame) == (has_keys, largest + 22)
        assert not lines_off_the_path(topology_when_all_report())

    def test_check_before_an_order_counts_the_key(self, keyed: Isp, alice: User) -> None:
        request = LineSpec(svc_mtu=1500, cir_bps=GBIT, transport="gre4", **self.whole_ports(keyed))
        found = quote(request, user=alice, now=clock.now())
        assert (found.feasible, found.largest_svc_mtu) == (True, 8950)
        lose_keys("hippo")
        assert quote(request, user=alice, now=clock.now()).largest_svc_mtu == 8954

    def test_line_without_a_key_keeps_its_mtu_when_routers_gain_keys(self, isp: Isp, alice: User) -> None:
        vll = line(isp, alice, svc_mtu=8954, **self.whole_ports(isp))
        ObservedRouter.objects.update(gre_keys=True)
        assert not lines_off_the_path(topology_when_all_report())
        modify(alice, vll, cir_bps=2 * GBIT)
        activate(vll)
        assert (vll.gre_key, vll.frame) == (None, 8976)


class TestExistingLines:
    """Existing lines do not change until their tunnel has to be re-created."""

    def test_change_without_a_new_tunnel_keeps_the_pair(self, isp: Isp, alice: User) -> None:
        vll = line(isp, alice)
        ObservedRouter.objects.update(gre_keys=True)
        for changes in ({"cir_bps": GBIT}, {"svc_mtu": 1400}, {"a_end": {"outer_vlan": 7}}):
            modify(alice, vll, **changes)
            activate(vll)
            assert (vll.gre_key, addresses(vll)) == (None, LOOPBACKS)
        assert GrePairLease.objects.get().owner == vll.pk
        assert line(isp, alice, 2).gre_key is not None  # both lines use the same two addresses

    def test_new_tunnel_to_another_router_gets_a_key_and_releases_the_pair(
        self, isp: Isp, alice: User
    ) -> None:
        vll = line(isp, alice)
        ObservedRouter.objects.update(gre_keys=True)
        placed = modify(alice, vll, z_end={"port": isp.ports["zebra:host-cust1"].pk})
        assert GreKeyLease.objects.get().owner == placed.pk
        assert GrePairLease.objects.get().released_at is None
        activate(vll)
        assert GreKeyLease.objects.get() == GreKeyLease.objects.get(owner=vll.pk, gre_key=vll.gre_key)
        assert (GrePairLease.objects.get().released_at is None, addresses(vll)) == (
            False,
            {"10.255.0.1", "10.255.0.3"},
        )

    def test_key_stays_with_the_line_across_families_and_routers(self, keyed: Isp, alice: User) -> None:
        vll = line(keyed, alice)
        key = vll.gre_key
        for changes in (
            {"transport": "gre6"},
            {"z_end": {"port": keyed.ports["zebra:host-cust1"].pk}},
            {"cir_bps": GBIT},
        ):
            modify(alice, vll, **changes)
            activate(vll)
            assert vll.gre_key == key
        left(vll, "z", keyed.routers["hippo"])
        modify(alice, vll, transport="vxlan4")
        activate(vll)
        lease = GreKeyLease.objects.get(gre_key=key)
        assert (vll.gre_key, lease.released_at is not None, lease.free_at is not None) == (None, True, True)

    def test_refused_change_releases_the_new_key_and_keeps_the_pair(self, isp: Isp, alice: User) -> None:
        vll = line(isp, alice)
        ObservedRouter.objects.update(gre_keys=True)
        modify(alice, vll, transport="gre6")
        key = vll.gre_key
        refuse(vll, "z")
        activate(vll)
        assert (vll.transport, vll.gre_key, addresses(vll)) == ("gre4", None, LOOPBACKS)
        assert GreKeyLease.objects.get(gre_key=key).released_at is not None
        assert owners() == {vll.pk}
        assert sums_are_right()


class TestRouterThatLosesKeys:
    """After a downgrade of VPP the agent fails the ends with keys, and a change gives the lines pairs."""

    def test_any_change_gives_the_line_a_pair(self, keyed: Isp, alice: User) -> None:
        vll = line(keyed, alice)
        key = vll.gre_key
        lose_keys("hippo")
        assert transports(keyed, "hippo")[0]["gre_key"] == key  # nothing changes automatically
        modify(alice, vll, cir_bps=GBIT)
        activate(vll)
        assert (vll.gre_key, addresses(vll)) == (None, LOOPBACKS)
        assert GrePairLease.objects.get().owner == vll.pk
        assert GreKeyLease.objects.get(gre_key=key).free_at is not None

    def test_other_transports_are_possible_when_all_pairs_are_leased(self, keyed: Isp, alice: User) -> None:
        first, second = line(keyed, alice, 1), line(keyed, alice, 2)
        lose_keys("hippo")
        modify(alice, first, cir_bps=GBIT)
        activate(first)
        with pytest.raises(GrePairsExhausted):
            modify(alice, second, cir_bps=GBIT)
        modify(alice, second, transport="vxlan4")
        activate(second)
        assert owners() == {first.pk, second.pk}

    def test_order_pending_approval_with_a_key_is_not_approved(
        self, keyed: Isp, alice: User, nora: User, dairy: Customer
    ) -> None:
        Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=0)
        pending = order(keyed, alice, transport="gre4")
        lose_keys("rhino")
        with pytest.raises(GreKeysGone) as refusal:
            order_approve(user=nora, order=pending, now=clock.now())
        assert "rhino and hippo" in refusal.value.sentence
        order_reject(user=nora, order=pending, reason="no keys", now=clock.now())
        assert GreKeyLease.objects.get().released_at is not None

    def test_order_pending_approval_without_a_key_is_approved_after_routers_gain_keys(
        self, isp: Isp, alice: User, nora: User, dairy: Customer
    ) -> None:
        Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=0)
        pending = order(isp, alice, transport="gre4")
        ObservedRouter.objects.update(gre_keys=True)
        assert order_approve(user=nora, order=pending, now=clock.now()).state == "inProgress"
        activate(pending.vll)
        assert pending.vll.gre_key is None


def test_key_has_cool_down_and_quarantine_like_a_vni(keyed: Isp, alice: User) -> None:
    vll = line(keyed, alice)
    modify(alice, vll, a_end={"port": keyed.ports["zebra:host-cust1"].pk})
    activate(vll)
    order_delete(user=alice, vll=vll, now=clock.now())
    for side in "az":
        answer(vll, side, "removed")
    lease = GreKeyLease.objects.get(gre_key=vll.gre_key)
    assert (lease.released_at is not None, lease.free_at) == (True, None)
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM allocation_grekeylease")
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    left(vll, "a", keyed.routers["rhino"])
    lease.refresh_from_db()
    assert lease.free_at is not None
    assert tunnel_leases.cooled_down_leases_free(now=lease.free_at) == 1
    assert not GreKeyLease.objects.exists()


def test_leased_key_is_not_leased_again(keyed: Isp, alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([7, 7, 8])
    monkeypatch.setattr(tunnel_leases.random, "randint", lambda low, high: next(drawn))
    assert [line(keyed, alice, number).gre_key for number in (1, 2)] == [7, 8]
    monkeypatch.setattr(tunnel_leases.random, "randint", lambda low, high: 7)
    with pytest.raises(GreKeysExhausted):
        line(keyed, alice, 3)


@pytest.mark.parametrize(("encapsulation", "key"), [("gre", 0), ("gre", 2**32), ("gre", -1), ("vxlan", 5)])
def test_database_refuses_an_impossible_key(vll: Vll, encapsulation: str, key: int) -> None:
    family = {"encapsulation": "gre", "vni": None} if encapsulation == "gre" else {}
    with pytest.raises(IntegrityError), transaction.atomic():
        Vll.objects.filter(pk=vll.pk).update(gre_key=key, **family)


def test_line_that_gets_a_key_is_tested_again(isp: Isp, alice: User, settings: Any) -> None:
    settings.LONGLINE_LINE_TEST = ActivationTestMode.OFF
    vll = line(isp, alice)
    settings.LONGLINE_LINE_TEST = ActivationTestMode.REQUIRED
    ObservedRouter.objects.update(gre_keys=True, line_tests=True)
    modify(alice, vll, cir_bps=GBIT)
    assert vll.activation_tests.count() == 0
    activate(vll)
    modify(alice, vll, transport="gre6")
    assert vll.activation_tests.get().state == "waiting"


def test_key_is_shown_and_searchable(keyed: Isp, alice: User, nora: User) -> None:
    vll, other = line(keyed, alice, 1), line(keyed, alice, 2)
    api = client(alice)
    assert api.get(f"/api/v1/vlls/{vll.pk}").json()["gre_key"] == vll.gre_key
    for query in ({"gre_key": vll.gre_key}, {"q": vll.gre_key}):
        found = api.get("/api/v1/vlls", query).json()["results"]
        assert [each["id"] for each in found] == [str(vll.pk)]
    table = b"".join(api.get("/api/v1/vlls.csv").streaming_content).decode()
    assert f",gre4,,{other.gre_key}," in table
    assert f"GRE key {vll.gre_key}" in text(signed_in(nora).get(f"/vlls/{vll.pk}/"))
    assert l2vpn_fields(vll, None, (4, 4))["identifier"] == vll.gre_key


def test_report_sets_key_support_unless_vpp_is_missing(isp: Isp) -> None:
    rhino = isp.routers["rhino"]

    def keys_after_report(**report: Any) -> bool:
        observation_take(router=rhino, report=observed_report(**report), now=clock.now())
        return ObservedRouter.objects.get(router=rhino).gre_keys

    assert keys_after_report(sent_ms=1, gre_keys=True)
    assert keys_after_report(sent_ms=2, vpp_connected=False, vpp_version=None, gre_keys=False)
    assert not keys_after_report(sent_ms=3, gre_keys=False)
    assert not keys_after_report(sent_ms=4)
