"""Measurements of a router replace the shipped cost table in admission, and the NOC can withdraw them."""

import json
from typing import Any

import pytest

from portal.accounts.models import User
from portal.allocation.errors import CoresBelowBooked, RouterFull
from portal.allocation.packet_capacity import BY_TABLE, Calibration, calibration_read, end_load, weights_of
from portal.core import clock
from portal.core.network.encapsulations import Transport
from portal.events.models import Event
from portal.inventory.errors import CalibrationOfAnother, CalibrationUnreadable, Retired
from portal.inventory.models import Router
from portal.inventory.operations import router_change
from portal.vll.operations.reservations import reservation_make
from portal.vll.router_operations.actions import router_calibration_set
from tests.integration.busy_routers import fill
from tests.integration.isp import GBIT, Isp
from tests.integration.leases import loads, sums_are_right
from tests.integration.noc.test_noc_api import client
from tests.integration.orders import end, modify, order
from tests.integration.router_answers import activate
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db

# A VXLAN frame costs a hundred times the table's value; a GENEVE frame costs as much as a cross-connect.
CLOCKS = {"l2xc": 25.0, "vxlan4": 10_025.0, "geneve4": 24.0, "vxlan6": 95.0, "geneve6": 95.0, "gre4": 85.0}


def printed(**other: Any) -> dict[str, Any]:
    """Return the agent's output, as docs/reference/agent-requests.md shows it."""
    figures = [
        {
            "transport": transport,
            "clocks": clocks,
            "least": clocks,
            "most": clocks,
            "nodes": [{"node": "l2-input", "clocks": 9.1}],
        }
        for transport, clocks in CLOCKS.items()
    ]
    return {
        "schema": 1,
        "router": "rhino",
        "measured_ms": 1790000020050,
        "vpp_version": "25.10-release",
        "agent_version": "0.1.0",
        "cpu": "AMD EPYC",
        "clock_hz": 2595768139,
        "rounds": 41,
        "frames": 16384,
        "figures": figures,
        "missing": [{"transport": "gre6", "message": "gre_tunnel_add_del"}],
    } | other


def read(**other: Any) -> Calibration:
    return calibration_read(json.dumps(printed(**other)), router="rhino")


def take(isp: Isp, user: User, calibration: Calibration | None, **more: Any) -> Router:
    router_calibration_set(
        router=isp.routers["rhino"], calibration=calibration, user=user, now=clock.now(), **more
    )
    return Router.objects.get(name="rhino")


def test_tunnel_weight_is_the_measured_cost_above_a_cross_connect(isp: Isp, nora: User) -> None:
    weights = weights_of(take(isp, nora, read()))
    assert weights[Transport.L2XC] == 1
    # 10,000 clocks of 2.6 GHz, compared with 67.2 ns per frame at 14.88 million frames per second.
    assert float(weights[Transport.VXLAN4]) == pytest.approx(2 * (1 + 10_000 / 2595768139 * 14.88e6))
    # Measured cheaper than a cross-connect, which is noise; and not measured at all.
    assert weights[Transport.GENEVE4] == 2
    assert weights[Transport.GRE6] == BY_TABLE[Transport.GRE6]
    assert weights_of(isp.routers["hippo"]) is BY_TABLE


def test_equal_nanoseconds_weigh_less_on_a_slower_cpu(isp: Isp, nora: User) -> None:
    rhino = take(isp, nora, read())
    fast = weights_of(rhino)[Transport.VXLAN4]
    rhino.cpu = "Atom C3558"
    assert float((weights_of(rhino)[Transport.VXLAN4] - 2) / (fast - 2)) == pytest.approx(5.01 / 22.28)


def test_measurement_refuses_an_order_that_the_table_admits_and_vice_versa(
    isp: Isp, alice: User, nora: User
) -> None:
    fill(isp, "rhino", except_load=end_load(GBIT, Transport.VXLAN4))
    take(isp, nora, read())
    with pytest.raises(RouterFull) as refusal:
        order(isp, alice, transport="vxlan4")
    assert refusal.value.router == "rhino"
    assert order(isp, alice, transport="vxlan4", cir_bps=refusal.value.free_bps).vll.transport == "vxlan4"


def test_cheaper_measurement_admits_a_larger_order(isp: Isp, alice: User, nora: User) -> None:
    fill(isp, "rhino", except_load=2 * GBIT)
    with pytest.raises(RouterFull):
        order(isp, alice, transport="geneve4")
    take(isp, nora, read())
    assert order(isp, alice, transport="geneve4").vll.transport == "geneve4"


def test_calibration_rebooks_lines_in_service_and_withdrawal_restores_them(
    isp: Isp, alice: User, nora: User
) -> None:
    vll = order(isp, alice, transport="vxlan4").vll
    activate(vll)
    by_table = loads(vll.pk)
    weights = weights_of(take(isp, nora, read()))
    heavier = end_load(GBIT, Transport.VXLAN4, weights)
    assert loads(vll.pk) == [("a", "rhino", heavier), by_table[1]]
    assert heavier > by_table[0][2]
    assert sums_are_right()
    take(isp, nora, None)
    assert loads(vll.pk) == by_table
    assert sums_are_right()


def test_change_in_progress_is_booked_by_the_new_figures(isp: Isp, alice: User, nora: User) -> None:
    vll = order(isp, alice, transport="vxlan4").vll
    activate(vll)
    modify(alice, vll, cir_bps=2 * GBIT)
    weights = weights_of(take(isp, nora, read()))
    assert sums_are_right()
    activate(vll)
    assert loads(vll.pk)[0] == ("a", "rhino", end_load(2 * GBIT, Transport.VXLAN4, weights))
    assert sums_are_right()


def test_reservation_books_the_most_expensive_transport(isp: Isp, alice: User, nora: User) -> None:
    weights = weights_of(take(isp, nora, read()))
    ends = {
        f"{side}_end": end(isp, f"{router}:host-cust1") for side, router in (("a", "rhino"), ("z", "hippo"))
    }
    reservation = reservation_make(user=alice, cir_bps=GBIT, now=clock.now(), **ends)
    assert loads(reservation.pk) == [
        ("a", "rhino", end_load(GBIT, Transport.VXLAN4, weights)),
        ("z", "hippo", end_load(GBIT, Transport.GENEVE6)),
    ]


def test_calibration_that_overbooks_needs_confirmation(isp: Isp, alice: User, nora: User) -> None:
    vll = order(isp, alice, transport="vxlan4", cir_bps=4 * GBIT).vll
    activate(vll)
    before = loads(vll.pk)
    dear = {Transport.L2XC: 25.0, Transport.VXLAN4: 100_025.0}
    too_dear = Calibration(
        measured_at=clock.now(), vpp_version="25.10", cpu="", clock_hz=2.6e9, rounds=1, clocks=dear
    )
    with pytest.raises(CoresBelowBooked) as refused:
        take(isp, nora, too_dear)
    assert refused.value.booked_cores > refused.value.bookable_cores
    assert loads(vll.pk) == before
    assert not Event.objects.filter(kind="router.calibration_taken").exists()
    assert take(isp, nora, too_dear, accept_affected=True).calibration is not None
    assert loads(vll.pk) != before
    # Reducing an existing overbooking needs no confirmation.
    assert take(isp, nora, None).calibration is None
    assert loads(vll.pk) == before


def test_other_cpu_rebooks_the_lines_of_a_calibrated_router(isp: Isp, alice: User, nora: User) -> None:
    vll = order(isp, alice, transport="vxlan4").vll
    activate(vll)
    rhino = take(isp, nora, read())
    router_change(router=rhino, user=nora, now=clock.now(), cpu="Xeon D1518")
    weights = weights_of(Router.objects.get(name="rhino"))
    assert loads(vll.pk)[0] == ("a", "rhino", end_load(GBIT, Transport.VXLAN4, weights))
    assert sums_are_right()


def test_author_and_figures_are_stored_with_the_router(isp: Isp, nora: User) -> None:
    rhino = take(isp, nora, read())
    take(isp, nora, read())
    taken = Event.objects.get(kind="router.calibration_taken")
    assert (taken.actor, taken.router_id, taken.data) == ("nora", rhino.pk, rhino.calibration)
    assert Calibration.of(rhino.calibration) == read()
    assert (rhino.calibration["clocks"]["vxlan4"], rhino.calibration["cpu"]) == (10_025.0, "AMD EPYC")
    take(isp, nora, None)
    assert Event.objects.filter(kind="router.calibration_returned", actor="nora").count() == 1


def test_retired_router_accepts_no_calibration(isp: Isp, nora: User) -> None:
    Router.objects.filter(name="rhino").update(retired_at=clock.now(), agent_url="")
    with pytest.raises(Retired):
        take(isp, nora, read())


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"schema": 2}, "/schema"),
        ({"clock_hz": 0}, "/clock_hz"),
        ({"figures": []}, "/figures"),
        ({"figures": printed()["figures"][1:]}, "none of l2xc"),
        ({"figures": printed()["figures"] * 2}, "occurs twice"),
        ({"figures": [printed()["figures"][0] | {"clocks": -1}]}, "/figures/0/clocks"),
        ({"figures": [printed()["figures"][0] | {"transport": "auto"}]}, "/figures/0/transport"),
        ({"measured_ms": 2**53}, ""),
        ({"more": 1}, "more"),
    ],
)
def test_invalid_agent_output_is_refused_by_location(other: dict[str, Any], says: str) -> None:
    with pytest.raises(CalibrationUnreadable) as refusal:
        read(**other)
    assert says in refusal.value.detail
    assert "calibrate -json" in refusal.value.sentence


@pytest.mark.parametrize("text", ["", "rhino, VPP 25.10", "[]", "{", "\ud800"])
def test_output_that_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(CalibrationUnreadable):
        calibration_read(text, router="rhino")


def test_measurement_of_another_router_is_refused() -> None:
    with pytest.raises(CalibrationOfAnother) as refusal:
        read(router="hippo")
    assert refusal.value.measured == "hippo"


def test_api_accepts_shows_and_withdraws(isp: Isp, nora: User, alice: User) -> None:
    path = f"/api/v1/routers/{isp.routers['rhino'].pk}/calibration"
    noc = client(nora)
    before = noc.get(path).json()
    assert (before["measured_at"], before["clock_hz"]) == (None, None)
    assert before["transports"][1]["mpps_per_core"] == before["transports"][1]["mpps_by_table"] == 14.15
    answer = noc.post(path, {"calibration": printed()}, format="json")
    assert answer.status_code == 200, answer.json()
    by_name = {each["transport"]: each for each in answer.json()["transports"]}
    assert by_name["vxlan4"]["clocks"] == 10_025.0
    assert by_name["vxlan4"]["mpps_per_core"] < 1 < by_name["vxlan4"]["mpps_by_table"]
    assert by_name["gre6"]["clocks"] is None
    assert noc.get(path).json() == answer.json()
    refused = noc.post(path, {"calibration": printed(router="hippo")}, format="json")
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (422, "calibration-of-another")
    assert noc.post(path, {"calibration": None}, format="json").json() == before
    assert client(alice).get(path).status_code == 403
    assert client(alice).post(path, {"calibration": None}, format="json").status_code == 403


def test_routers_page_accepts_and_withdraws(isp: Isp, nora: User) -> None:
    page = f"/noc/routers/{isp.routers['rhino'].pk}/"
    browser = signed_in(nora)
    assert "Admission uses the default table." in text(browser.get(page))
    answer = browser.post(
        f"{page}calibration/", {"do": "take", "printed": json.dumps(printed())}, follow=True
    )
    assert "Admission uses the figures measured on this router at" in text(answer)
    assert "10025.0" in text(answer)
    answer = browser.post(f"{page}calibration/", {"do": "take", "printed": "rhino, VPP 25.10"}, follow=True)
    assert "This is not the output of longline-agent calibrate -json" in text(answer)
    answer = browser.post(f"{page}calibration/", {"do": "return"}, follow=True)
    assert "Admission uses the default table again." in text(answer)
    assert browser.post(f"{page}calibration/", {}).status_code == 400
    assert Router.objects.get(name="rhino").calibration is None
