"""The portal checks the NOC's inventory changes against the lines in service before it applies them."""

from datetime import timedelta
from typing import Any

import pytest

from portal.accounts.models import User
from portal.core import clock
from portal.diagnosis.checks import CheckState, Finding
from portal.diagnosis.diagnosis import diagnosis_of
from portal.diagnosis.health import known_health, with_health_state
from portal.events.models import Event
from portal.inventory.models import BackboneLink, ObservedRouter, Port
from portal.inventory.operations import link_change, link_create, port_change
from portal.vll.errors import LinesAffected
from portal.vll.lines_not_carried import lines_not_carried_keep
from portal.vll.models import Vll
from portal.vll.operations.line_removal import order_delete
from tests.integration.isp import Isp
from tests.integration.noc.test_noc_api import client
from tests.integration.orders import end, order
from tests.integration.router_answers import activate
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


def not_carried_events() -> list[tuple[Any, str]]:
    rows = Event.objects.filter(kind="vll.not_carried").order_by("id")
    return [(row.vll_id, row.data["because"]) for row in rows]


def change(isp: Isp, nora: User, link: str, **changes: Any) -> None:
    link_change(link=isp.links[link], user=nora, now=clock.now(), **changes)


def test_port_mtu_can_be_lowered_to_the_byte_that_lines_need(isp: Isp, nora: User, vll: Vll) -> None:
    port, now = isp.ports["hippo:host-cust1"], clock.now()
    assert port_change(port=port, user=nora, now=now, max_frame=1518).max_frame == 1518
    with pytest.raises(LinesAffected) as refusal:
        port_change(port=port, user=nora, now=now, max_frame=1517)
    assert refusal.value.sentence == (
        "With this change to hippo:host-cust1, the largest frames of these lines would be lost: ZRH-AMS. "
        "Keep the present value, or accept the loss: their customers are notified."
    )
    assert (Port.objects.get(pk=port.pk).max_frame, not_carried_events()) == (1518, [])
    changed = port_change(port=port, user=nora, now=now, max_frame=1517, accept_affected=True)
    assert (changed.max_frame, not_carried_events()) == (1517, [(vll.pk, "hippo:host-cust1")])
    # The portal sends no second event for lines that are already affected.
    port_change(port=port, user=nora, now=now, max_frame=1516)
    assert len(not_carried_events()) == 1


@pytest.mark.parametrize("link", ["rhino-hippo", "zebra-panda"])
@pytest.mark.parametrize("side", ["a_ip_mtu", "z_ip_mtu"])
def test_link_mtu_can_be_lowered_to_the_byte_that_lines_need(
    isp: Isp, nora: User, vll: Vll, link: str, side: str
) -> None:
    # The path uses the second link only after a failure, which the planning policy has promised to survive.
    change(isp, nora, link, **{side: 1550})
    with pytest.raises(LinesAffected):
        change(isp, nora, link, **{side: 1549})
    assert getattr(BackboneLink.objects.get(pk=isp.links[link].pk), side) == 1550
    change(isp, nora, link, **{side: 1549}, accept_affected=True)
    assert not_carried_events() == [(vll.pk, str(isp.links[link]))]


def test_link_with_unknown_mtu_affects_lines(isp: Isp, nora: User, vll: Vll) -> None:
    with pytest.raises(LinesAffected):
        change(isp, nora, "zebra-panda", a_ip_mtu=None, z_ip_mtu=None)


def test_removing_the_last_path_from_service_needs_confirmation(isp: Isp, nora: User, vll: Vll) -> None:
    change(isp, nora, "rhino-hippo", in_service=False)
    with pytest.raises(LinesAffected):
        change(isp, nora, "panda-otter", in_service=False)
    change(isp, nora, "panda-otter", ipv6=False)
    with pytest.raises(LinesAffected):
        change(isp, nora, "panda-otter", ipv4=False)


def test_new_link_on_a_shorter_but_narrower_path_affects_lines(isp: Isp, nora: User, vll: Vll) -> None:
    facts: dict[str, Any] = {
        "a_router": isp.routers["zebra"],
        "a_interface": "bb-short",
        "a_ip_mtu": 1500,
        "z_router": isp.routers["otter"],
        "z_interface": "bb-short",
        "z_ip_mtu": 1500,
    }
    with pytest.raises(LinesAffected):
        link_create(user=nora, now=clock.now(), **facts)
    link_create(user=nora, now=clock.now(), **facts | {"a_ip_mtu": 1550, "z_ip_mtu": 1550})


def test_terminated_and_local_lines_are_not_checked(isp: Isp, alice: User, nora: User) -> None:
    order(isp, alice, z_end=end(isp, "rhino:host-cust2"))
    Vll.objects.filter(pk=order(isp, alice, a_end=end(isp, "rhino:host-cust2", outer=2)).vll_id).update(
        lifecycle="cancelled", wanted_present=False
    )
    change(isp, nora, "rhino-hippo", a_ip_mtu=1000)
    assert not_carried_events() == []


def test_silent_agent_does_not_hide_affected_lines(isp: Isp, nora: User, vll: Vll) -> None:
    ObservedRouter.objects.update(reported_at="2020-01-01T00:00:00Z")
    with pytest.raises(LinesAffected):
        change(isp, nora, "rhino-hippo", a_ip_mtu=1549)


def test_change_without_effect_on_paths_checks_no_line(isp: Isp, nora: User, vll: Vll) -> None:
    port_change(port=isp.ports["hippo:host-cust1"], user=nora, now=clock.now(), description="east wing")
    change(isp, nora, "rhino-hippo", a_metric=20)
    assert not_carried_events() == []


def test_api_names_the_lines_and_accepts_a_confirmation(isp: Isp, nora: User, vll: Vll) -> None:
    api, address = client(nora), f"/api/v1/links/{isp.links['rhino-hippo'].pk}"
    etag = {"HTTP_IF_MATCH": api.get(address)["ETag"]}
    refused = api.patch(address, {"z_ip_mtu": 1500}, format="json", **etag)
    assert refused.status_code == 409
    (error,) = refused.json()["errors"]
    assert (error["field"], error["code"], error["facts"]["lines"]) == (
        "accept_affected",
        "lines-affected",
        ["ZRH-AMS"],
    )
    body = {"z_ip_mtu": 1500, "accept_affected": True}
    assert api.patch(address, body, format="json", **etag).json()["z_ip_mtu"] == 1500


@pytest.mark.parametrize("kind", ["link", "port"])
def test_health_diagnosis_and_events_agree_on_a_line_that_is_not_carried(
    isp: Isp, nora: User, alice: User, vll: Vll, kind: str
) -> None:
    activate(vll)
    Vll.objects.filter(pk=vll.pk).update(oper_status="op-up")

    def narrow(*, to_carry: bool) -> None:
        if kind == "link":
            change(isp, nora, "rhino-hippo", a_ip_mtu=1550 if to_carry else 1549, accept_affected=True)
        else:
            size = 1518 if to_carry else 1517
            port = isp.ports["hippo:host-cust1"]
            port_change(port=port, user=nora, now=clock.now(), max_frame=size, accept_affected=True)

    def agree() -> tuple[str, bool]:
        """Return the health, and whether the diagnosis finds that the line is not carried."""
        line = Vll.objects.get(pk=vll.pk)
        found = known_health(line)
        assert found is not None
        queried = with_health_state(Vll.objects.filter(pk=vll.pk)).values_list("health_state", flat=True)
        assert list(queried) == [found.state.value]
        checks = diagnosis_of(line, now=clock.now()).checks
        broken = {check.finding for check in checks if check.state == CheckState.BROKEN}
        return found.state.value, Finding.NOT_CARRIED in broken

    assert agree() == ("up", False)
    narrow(to_carry=False)
    assert agree() == ("degraded", True)
    page = text(signed_in(alice).get(f"/vlls/{vll.pk}/"))
    assert "no longer carries this line's largest frames everywhere" in page
    lines_not_carried_keep(now=clock.now())
    assert agree() == ("degraded", True)
    narrow(to_carry=True)
    lines_not_carried_keep(now=clock.now())
    assert agree() == ("up", False)
    assert Event.objects.filter(kind="vll.carried", vll_id=vll.pk).count() == 1
    lines_not_carried_keep(now=clock.now())
    assert Event.objects.filter(kind="vll.carried", vll_id=vll.pk).count() == 1


def narrow_port(isp: Isp, nora: User, max_frame: int) -> None:
    port = isp.ports["rhino:host-cust1"]
    port_change(port=port, user=nora, now=clock.now(), max_frame=max_frame, accept_affected=True)


def test_health_and_diagnosis_agree_on_a_local_line_that_its_port_no_longer_carries(
    isp: Isp, nora: User, alice: User
) -> None:
    line = order(isp, alice, z_end=end(isp, "rhino:host-cust2")).vll
    activate(line)
    Vll.objects.filter(pk=line.pk).update(oper_status="op-up")
    narrow_port(isp, nora, 1517)
    line = Vll.objects.get(pk=line.pk)
    found = known_health(line)
    assert found is not None
    broken = [
        check for check in diagnosis_of(line, now=clock.now()).checks if check.state == CheckState.BROKEN
    ]
    assert (found.state, Finding.NOT_CARRIED in {check.finding for check in broken}) == ("degraded", True)


def test_removed_line_is_not_reported_as_carried_again(isp: Isp, nora: User, alice: User, vll: Vll) -> None:
    activate(vll)
    narrow_port(isp, nora, 1517)
    order_delete(user=alice, vll=vll, now=clock.now(), cooling_off=timedelta())
    lines_not_carried_keep(now=clock.now())
    assert Vll.objects.get(pk=vll.pk).not_carried_since is None
    assert not Event.objects.filter(kind="vll.carried").exists()


def test_second_change_keeps_the_time_of_the_first_failure(isp: Isp, nora: User, vll: Vll) -> None:
    activate(vll)
    change(isp, nora, "rhino-hippo", a_ip_mtu=1549, accept_affected=True)
    since = Vll.objects.get(pk=vll.pk).not_carried_since
    assert since is not None
    narrow_port(isp, nora, 1517)
    assert Vll.objects.get(pk=vll.pk).not_carried_since == since
