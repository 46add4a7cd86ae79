"""Adopt foreign lines without changing them, book them like any other line, and release them again."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, ClassVar
from uuid import uuid4

import pytest
from msgspec.structs import replace

from portal.accounts.models import Customer, User
from portal.allocation.errors import GrePairsExhausted, TunnelKeyTaken, VlanTaken, VniPoolExhausted
from portal.allocation.models import (
    BandwidthBooking,
    GreKeyLease,
    GrePairLease,
    PortVlanLease,
    ReservedVniRange,
    VniLease,
)
from portal.allocation.tunnel_leases import LAST_VNI, gre_key_lease
from portal.core import clock
from portal.inventory.models import ObservedCircuit, ObservedRouter, Router
from portal.inventory.observation_store import circuits_store
from portal.inventory.reported_observation import CircuitReport
from portal.vll.errors import (
    FoundLineOdd,
    FoundLineUnknown,
    FoundPortUnknown,
    RouterAdoptsNothing,
    RouterLetsNothingGo,
    WrongOrderState,
)
from portal.vll.models import Order, Vll, VllEnd
from portal.vll.operations.adopt_line import Adoption, line_adopt
from portal.vll.operations.line_removal import dead_routers_settle, line_let_go
from portal.vll.operations.modify_line import order_modify
from portal.vll.operations.order_endings import order_cancel
from portal.vll.operations.retry_order import order_retry
from provisioning.intent_document import EndKey, IntendedEnd, Release
from provisioning.intent_rows import router_rows
from tests.integration.api.test_api_v1 import client
from tests.integration.circuits import attachment, circuit, tunnel
from tests.integration.isp import Isp
from tests.integration.orders import end, order
from tests.integration.router_answers import activate, answer
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
ORDERED: dict[str, Any] = {"description": "ACME", "svc_mtu": 1500, "cir_bps": 10**7}
DIFFERS = {"code": "adoption_differs", "message": "VLAN 7", "object": "host-cust1.301"}
ENDS = {"a_end": "rhino", "z_end": "hippo"}
Find = Callable[..., int]


@pytest.fixture
def found(isp: Isp) -> Find:
    """Return the id of a found line: VLAN 300 of rhino to 301 of hippo."""
    ObservedRouter.objects.update(reported_at=clock.now(), vpp_connected=True, adoption="allowed")

    def found(of: str = "vxlan", key: int = 7001, **otherwise: Any) -> int:
        for here, there, vlan in (("rhino", "hippo", 300), ("hippo", "rhino", 301)):
            store(isp, here, half(here, there, key, vlan, of, **otherwise))
        return int(ObservedCircuit.objects.order_by("pk").values_list("pk", flat=True)[0])

    return found


def half(
    here: str, there: str, key: int, vlan: int, of: str, tag: str = "vppcfg: ACME", **otherwise: Any
) -> CircuitReport:
    access, wire = attachment("host-cust1", vlan), tunnel(here, there, key, of)  # type: ignore[arg-type]
    if not key:
        assert wire.tunnel
        wire = replace(wire, tunnel=replace(wire.tunnel, gre_key=None))
    return circuit(replace(access, tag=tag), wire, **otherwise)


def store(isp: Isp, router: str, *circuits: CircuitReport) -> None:
    circuits_store(isp.routers[router], list(circuits))


def adopt(user: User, line: int, **otherwise: Any) -> Order:
    return line_adopt(user=user, adoption=adoption(line, **otherwise), now=clock.now())


def adoption(line: int, **otherwise: Any) -> Adoption:
    return Adoption(found_line=line, **(ORDERED | otherwise))


def row(isp: Isp, router: str) -> IntendedEnd:
    (found,) = list(router_rows(isp.routers[router]).ends)
    return found


def both(vll: Vll, status: str) -> None:
    for side in "az":
        answer(vll, side, status)
    vll.refresh_from_db()


@pytest.mark.parametrize(
    ("of", "key", "leases"), [("vxlan", 7001, VniLease), ("geneve", 7, VniLease), ("gre", 9, GreKeyLease)]
)
def test_adopted_line_is_booked_with_its_existing_values(
    isp: Isp, found: Find, nina: User, dairy: Customer, of: str, key: int, leases: Any
) -> None:
    placed = adopt(nina, found(of, key))
    vll = Vll.objects.get(pk=placed.vll_id)
    assert (vll.customer, vll.encapsulation, vll.family, vll.vni or vll.gre_key) == (dairy, of, 4, key)
    assert leases.objects.get(owner=vll.pk)
    assert BandwidthBooking.objects.filter(owner=vll.pk).count() == 2
    assert PortVlanLease.objects.filter(owner=vll.pk).count() == 2
    here = row(isp, "rhino")
    assert here.members["adopt"]
    assert "bandwidth" not in here.members
    access, transport = here.members["access"], here.members["transport"]
    assert (access["interface"], access["outer_vlan"]) == ("host-cust1", 300)
    assert (transport["local"], transport["remote"]) == ("10.255.0.1", "10.255.0.2")


def test_gre_address_pair_without_a_key_is_leased(isp: Isp, found: Find, nina: User) -> None:
    placed = adopt(nina, found("gre", 0))
    assert GrePairLease.objects.get().owner == placed.vll_id
    assert "gre_key" not in row(isp, "hippo").members["transport"]


def test_line_is_policed_and_in_service_after_both_routers_adopt_it(
    isp: Isp, found: Find, nina: User
) -> None:
    ObservedRouter.objects.update(policing="subinterface")
    placed = adopt(nina, found())
    vll = Vll.objects.get(pk=placed.vll_id)
    both(vll, "verified")
    here = row(isp, "rhino")
    assert ("adopt" in here.members, here.revision) == (False, 2)
    assert here.members["bandwidth"]
    assert (vll.lifecycle, Order.objects.get().state) == ("pendingActive", "inProgress")
    both(vll, "verified")
    assert (vll.lifecycle, vll.handover, Order.objects.get().state) == ("active", "", "completed")


def test_refused_adoption_releases_the_line_and_deletes_nothing(isp: Isp, found: Find, nina: User) -> None:
    placed = adopt(nina, found())
    vll = Vll.objects.get(pk=placed.vll_id)
    answer(vll, "a", "verified")
    answer(vll, "z", "conflict", reason=DIFFERS, permanent=True)
    here = row(isp, "rhino")
    assert not here.wanted_present
    assert here.release == Release("vppcfg: ACME", None)
    vll.refresh_from_db()
    both(vll, "removed")
    assert (vll.lifecycle, Order.objects.get().state) == ("cancelled", "failed")
    assert not BandwidthBooking.objects.exists()
    with pytest.raises(WrongOrderState):
        order_retry(user=nina, order=Order.objects.get(), now=clock.now())


@pytest.mark.parametrize("taken_over", [False, True])
def test_cancelled_adoption_releases_the_line(isp: Isp, found: Find, nina: User, taken_over: bool) -> None:
    placed = adopt(nina, found())
    vll = Vll.objects.get(pk=placed.vll_id)
    if taken_over:
        both(vll, "verified")
    order_cancel(user=nina, order=Order.objects.get(), now=clock.now())
    assert row(isp, "hippo").release == Release("vppcfg: ACME", None)


def test_adopted_line_is_released_with_its_original_tags(isp: Isp, found: Find, nina: User) -> None:
    vll = Vll.objects.get(pk=adopt(nina, found()).vll_id)
    both(vll, "verified")
    both(vll, "verified")
    going = line_let_go(user=nina, vll=vll, now=clock.now())
    here = row(isp, "rhino")
    assert (here.wanted_present, here.release) == (False, Release("vppcfg: ACME", None))
    with pytest.raises(WrongOrderState):
        order_cancel(user=nina, order=going, now=clock.now())
    vll.refresh_from_db()
    both(vll, "removed")
    assert (vll.lifecycle, Order.objects.get(pk=going.pk).state) == ("terminated", "completed")


def in_service(nina: User, line: int) -> Vll:
    vll = Vll.objects.get(pk=adopt(nina, line).vll_id)
    both(vll, "verified")
    both(vll, "verified")
    return vll


def test_only_adopted_lines_can_be_released(isp: Isp, alice: User, found: Find, nina: User) -> None:
    def offered(line: Vll) -> bool:
        return f"/vlls/{line.pk}/let-go/" in signed_in(nina).get(f"/vlls/{line.pk}/").content.decode()

    adopted = in_service(nina, found())
    built = order(isp, alice).vll
    activate(built)
    assert offered(adopted)
    assert not offered(built)


def test_dead_router_releases_the_line_after_it_returns(isp: Isp, found: Find, nina: User) -> None:
    vll = in_service(nina, found())
    line_let_go(user=nina, vll=vll, now=clock.now())
    answer(vll, "a", "removed")
    Router.objects.filter(name="hippo").update(dead_since=clock.now(), maintenance_since=clock.now())
    assert dead_routers_settle(now=clock.now()) == 1
    rows = router_rows(isp.routers["hippo"])
    assert rows.ends == ()
    assert [key.release for key in rows.moved_away] == [Release("vppcfg: ACME", None)]


@pytest.mark.parametrize("releasing", [False, True])
def test_agent_without_release_support_receives_nothing_about_the_line(
    isp: Isp, found: Find, nina: User, releasing: bool
) -> None:
    """The agent would refuse the whole intent; it keeps forwarding a line that the intent omits."""
    if releasing:
        line_let_go(user=nina, vll=in_service(nina, found()), now=clock.now())
    else:
        adopt(nina, found())
    ObservedRouter.objects.update(adoption="")
    assert list(router_rows(isp.routers["rhino"]).ends) == []
    ObservedRouter.objects.update(adoption="refused")
    assert len(list(router_rows(isp.routers["rhino"]).ends)) == 1


def test_agent_that_forbids_adoption_still_releases_lines(isp: Isp, found: Find, nina: User) -> None:
    vll = in_service(nina, found())
    ObservedRouter.objects.update(adoption="")
    with pytest.raises(RouterLetsNothingGo):
        line_let_go(user=nina, vll=vll, now=clock.now())
    ObservedRouter.objects.update(adoption="refused")
    line_let_go(user=nina, vll=vll, now=clock.now())
    assert row(isp, "rhino").release


@pytest.mark.parametrize(("of", "key"), [("vxlan", 7001), ("gre", 9)])
def test_change_keeps_the_addresses_of_the_line(isp: Isp, found: Find, nina: User, of: str, key: int) -> None:
    line = found(of, key)
    ObservedRouter.objects.update(gre_keys=True)
    for circuit_ in ObservedCircuit.objects.all():
        circuit_.local, circuit_.remote = (
            address.replace("10.255.0", "10.9.9") for address in (circuit_.local, circuit_.remote)
        )
        circuit_.save()
    vll = in_service(nina, line)
    order_modify(user=nina, vll=vll, changes={"cir_bps": 2 * ORDERED["cir_bps"]}, now=clock.now())
    here = row(isp, "rhino")
    transport = here.members["transport"]
    assert (transport["local"], transport["remote"]) == ("10.9.9.1", "10.9.9.2")
    assert (transport["vni"] or transport["gre_key"]) == key
    assert "testing" not in here.members


def test_original_tags_are_dropped_with_their_interfaces(isp: Isp, found: Find, nina: User) -> None:
    vll = in_service(nina, found())
    moved = {"port": isp.ports["rhino:host-cust2"].pk}
    order_modify(user=nina, vll=vll, changes={"a_end": moved}, now=clock.now())
    assert {each.side: each.access_tag_before for each in VllEnd.objects.all()} == {
        "a": "",
        "z": "vppcfg: ACME",
    }


def only(first: int, last: int) -> None:
    """Reserve all VNIs except these."""
    ReservedVniRange.objects.create(first=1, last=first - 1, reason="below")
    ReservedVniRange.objects.create(first=last + 1, last=LAST_VNI, reason="above")


def test_foreign_vni_is_not_leased(isp: Isp, found: Find, alice: User) -> None:
    found("geneve", 7001)
    only(7000, 7001)
    assert order(isp, alice).vll.vni == 7000
    with pytest.raises(VniPoolExhausted):
        more = {side: end(isp, f"{name}:host-cust1", outer=7) for side, name in ENDS.items()}
        order(isp, alice, **more)


def test_foreign_gre_key_is_not_leased(found: Find, monkeypatch: pytest.MonkeyPatch) -> None:
    found("gre", 9)
    tried = iter((9, 9, 11))
    monkeypatch.setattr("random.randint", lambda *_: next(tried))
    assert gre_key_lease(owner=uuid4(), now=clock.now()) == 11


def test_foreign_address_pair_is_not_leased(isp: Isp, found: Find, alice: User) -> None:
    ObservedRouter.objects.update(gre_keys=False)
    order(isp, alice, transport="gre4")
    GrePairLease.objects.all().delete()
    found("gre", 0)
    with pytest.raises(GrePairsExhausted):
        more = {side: end(isp, f"{name}:host-cust1", outer=7) for side, name in ENDS.items()}
        order(isp, alice, transport="gre4", **more)


def test_foreign_resources_are_not_chosen_for_a_new_line(isp: Isp, found: Find, alice: User) -> None:
    store(isp, "rhino", half("rhino", "hippo", 5, 100, "vxlan"))
    store(isp, "hippo", half("hippo", "rhino", 5, 101, "vxlan"))
    placed = order(
        isp,
        alice,
        a_end=end(isp, "rhino:host-cust1", outer="any"),
        z_end=end(isp, "hippo:host-cust1", outer="any"),
    )
    assert {each.outer_vlan for each in placed.vll.ends.all()} == {102}


@pytest.mark.parametrize(("of", "key"), [("vxlan", 7001), ("gre", 9), ("gre", 0)])
def test_released_line_can_be_adopted_again_immediately(
    isp: Isp, found: Find, nina: User, of: str, key: int
) -> None:
    line = found(of, key)
    vll = Vll.objects.get(pk=adopt(nina, line).vll_id)
    both(vll, "verified")
    both(vll, "verified")
    line_let_go(user=nina, vll=vll, now=clock.now())
    both(vll, "removed")
    assert Vll.objects.get(pk=adopt(nina, line).vll_id).handover == "adopt"


def test_removed_adopted_line_is_deleted_like_any_other(isp: Isp, found: Find, nina: User) -> None:
    vll = Vll.objects.get(pk=adopt(nina, found()).vll_id)
    both(vll, "verified")
    both(vll, "verified")
    assert client(nina).delete(f"/api/v1/vlls/{vll.pk}", headers={"If-Match": "*"}).status_code == 202
    assert row(isp, "rhino").release is None


class TestRefused:
    def test_line_with_a_finding_is_refused(self, found: Find, nina: User) -> None:
        with pytest.raises(FoundLineOdd) as refused:
            adopt(nina, found(back=False))
        assert "direction" in refused.value.sentence or "nothing" in refused.value.sentence

    @pytest.mark.parametrize("tag", ["longline:mine", "caf\ufffd"])
    def test_tag_that_cannot_be_restored_is_refused(self, found: Find, nina: User, tag: str) -> None:
        with pytest.raises(FoundLineOdd) as refused:
            adopt(nina, found(tag=tag))
        assert "could not be restored later" in refused.value.sentence

    def test_single_8021ad_tag_is_refused(self, isp: Isp, found: Find, nina: User) -> None:
        found()
        odd = attachment("host-cust1", 300, dot1ad=True)
        store(isp, "rhino", circuit(odd, tunnel("rhino", "hippo", 7001)))
        with pytest.raises(FoundLineOdd):
            adopt(nina, ObservedCircuit.objects.earliest("pk").pk)

    def test_line_that_no_longer_exists_is_refused(self, found: Find, nina: User) -> None:
        line = found()
        ObservedCircuit.objects.all().delete()
        with pytest.raises(FoundLineUnknown):
            adopt(nina, line)

    def test_one_sided_line_is_refused(self, isp: Isp, found: Find, nina: User) -> None:
        line = found()
        store(isp, "hippo")
        with pytest.raises(FoundLineOdd):
            adopt(nina, line)

    @pytest.mark.parametrize(
        "agent",
        [{"adoption": "refused"}, {"adoption": ""}, {"reported_at": clock.now() - timedelta(minutes=5)}],
    )
    def test_agent_without_adoption_or_absent_agent_is_refused(
        self, isp: Isp, found: Find, nina: User, agent: dict[str, Any]
    ) -> None:
        line = found()
        ObservedRouter.objects.filter(router=isp.routers["hippo"]).update(**agent)
        with pytest.raises(RouterAdoptsNothing):
            adopt(nina, line)

    def test_interface_without_a_port_is_refused(self, isp: Isp, found: Find, nina: User) -> None:
        line = found()
        VllEnd.objects.all().delete()
        isp.ports["hippo:host-cust1"].delete()
        with pytest.raises(FoundPortUnknown):
            adopt(nina, line)

    def test_capacity_booked_by_another_line_is_refused(
        self, isp: Isp, found: Find, nina: User, alice: User
    ) -> None:
        order(
            isp,
            alice,
            a_end=end(isp, "rhino:host-cust1", outer=300),
            z_end=end(isp, "hippo:host-cust1", outer=9),
        )
        with pytest.raises(VlanTaken):
            adopt(nina, found())
        assert Vll.objects.count() == 1

    def test_key_leased_by_another_line_is_refused(
        self, isp: Isp, found: Find, nina: User, alice: User
    ) -> None:
        other = order(isp, alice).vll
        with pytest.raises(TunnelKeyTaken):
            adopt(nina, found(key=other.vni))
        assert Vll.objects.count() == 1

    def test_only_one_of_two_concurrent_adoptions_succeeds(self, found: Find, nina: User) -> None:
        line = found()
        adopt(nina, line)
        with pytest.raises(VlanTaken):
            adopt(nina, line)


def test_api_adopts_and_releases_for_noc_admins_only(
    isp: Isp, found: Find, nina: User, nora: User, alice: User
) -> None:
    path = f"/api/v1/found-lines/{found()}/adopt"
    for user in (nora, alice):
        assert client(user).post(path, ORDERED, format="json").status_code == 403
    taken = client(nina).post(path, ORDERED, format="json")
    assert taken.status_code == 202, taken.content
    vll = Vll.objects.get(pk=taken.json()["vll"]["id"])
    both(vll, "verified")
    both(vll, "verified")
    let_go = f"/api/v1/vlls/{vll.pk}/let-go"
    assert client(nora).post(let_go).status_code == 403
    assert client(nina).post(let_go).status_code == 202
    assert EndKey(vll.pk, "a", 3, present=False) in {
        EndKey(each.vll, each.side, each.revision, each.wanted_present)
        for each in list(router_rows(isp.routers["rhino"]).ends)
    }


class TestPages:
    FORM: ClassVar = {"cir": "10", "cir_unit": "1000000", "svc_mtu": "1500", "description": "ACME"}

    def test_noc_admins_adopt_from_the_list(self, found: Find, nina: User, nora: User) -> None:
        path = f"/noc/found-lines/{found()}/adopt/"
        assert "Take over" in text(signed_in(nina).get("/noc/found-lines/"))
        assert "Take over" not in text(signed_in(nora).get("/noc/found-lines/"))
        assert signed_in(nora).get(path).status_code == 403
        browser = signed_in(nina)
        assert 'value="vppcfg: ACME"' in browser.get(path).content.decode()
        assert browser.post(path, self.FORM | {"cir": ""}).status_code == 422
        vll_page = browser.post(path, self.FORM)["Location"]
        assert vll_page == f"/vlls/{Vll.objects.get().pk}/"

    def test_unnamed_line_is_proposed_the_names_of_its_sites(self, found: Find, nina: User) -> None:
        page = signed_in(nina).get(f"/noc/found-lines/{found(tag='')}/adopt/").content.decode()
        assert 'value="Zürich – Zürich"' in page

    def test_refusal_is_shown_and_keeps_the_input(self, found: Find, nina: User) -> None:
        path = f"/noc/found-lines/{found()}/adopt/"
        ObservedRouter.objects.update(adoption="refused")
        response = signed_in(nina).post(path, self.FORM)
        assert response.status_code == 422
        assert "is not allowed to take over lines" in text(response)
        assert 'value="ACME"' in response.content.decode()

    def test_line_page_releases_a_line_after_confirmation(self, found: Find, nina: User, alice: User) -> None:
        vll = in_service(nina, found())
        assert "Let go" in text(signed_in(nina).get(f"/vlls/{vll.pk}/"))
        assert "Let go" not in text(signed_in(alice).get(f"/vlls/{vll.pk}/"))
        path = f"/vlls/{vll.pk}/let-go/"
        assert signed_in(alice).post(path).status_code == 403
        assert signed_in(nina).post(path)["Location"] == f"/vlls/{vll.pk}/"
        assert signed_in(nina).post(path).status_code == 409
