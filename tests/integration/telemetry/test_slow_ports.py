"""A port whose link is slower than agreed raises an alarm, says so, and takes no more than is left."""

import re
from datetime import timedelta
from typing import Any

import pytest

from portal.accounts.models import User
from portal.alarms.kinds import Kind
from portal.allocation.bookings import bandwidth_book
from portal.allocation.errors import PortFull
from portal.core import clock
from portal.diagnosis.diagnosis import diagnosis_of
from portal.diagnosis.health import in_service_counts, known_health, with_health_state
from portal.inventory.interfaces import overbooked_ports, with_link_speed
from portal.inventory.models import ObservedInterface, ObservedRouter, Port
from portal.inventory.models.link import LinkSpeedNotRead
from portal.telemetry.router_silences import uptime_note
from portal.vll.models import Vll
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import end, modify, order
from tests.integration.raised_alarms import alarm_texts, alarms_found
from tests.integration.router_answers import activate
from tests.integration.web_pages.browser import signed_in, text
from tests.integration.web_pages.test_vll_orders import fields

pytestmark = pytest.mark.django_db
NAME = "rhino:host-cust1"


def link(isp: Isp, speed_bps: int | None, **otherwise: Any) -> Port:
    """Rhino's first port, as its agent last reported the link."""
    port = isp.ports[NAME]
    seen = {"admin_up": True, "link_up": True, "ip_mtu": 9000, "speed_bps": speed_bps} | otherwise
    ObservedInterface.objects.update_or_create(router=port.router, name=port.interface, defaults=seen)
    return port


def another(isp: Isp, alice: User, **wanted: Any) -> None:
    """Order a second line between the same ports."""
    ends = {"a_end": end(isp, NAME, outer=200), "z_end": end(isp, "hippo:host-cust1", outer=200)}
    order(isp, alice, **ends, **wanted)


def port_as_read() -> Port:
    """Return rhino's first port with the speed of its link."""
    return with_link_speed(Port.objects.select_related("router")).get(
        router__name="rhino", interface="host-cust1"
    )


@pytest.mark.parametrize(
    ("bookable", "link_bps", "left"),
    [
        (10 * GBIT, 10 * GBIT, 10 * GBIT),
        (10 * GBIT, 25 * GBIT, 10 * GBIT),
        (10 * GBIT, None, 10 * GBIT),
        (10 * GBIT, 4 * GBIT, 4 * GBIT),
        (20 * GBIT, 5 * GBIT, 10 * GBIT),
        (5 * GBIT, 5 * GBIT, 2.5 * GBIT),
        (10 * GBIT, 0, 0),
        # Rounded down, exactly: a float has 53 bits.
        (10 * GBIT - 1, 3, 2),
        (2**62, 5 * GBIT + 1, 2305843009674862553),
    ],
)
def test_a_slower_link_has_room_for_the_same_part_of_its_speed(
    isp: Isp, bookable: int, link_bps: int | None, left: int
) -> None:
    port = link(isp, link_bps)
    Port.objects.filter(pk=port.pk).update(bookable_bps=bookable, oversubscription_percent=None)
    assert port_as_read().bookable_now_bps == left


@pytest.mark.parametrize("booked", [0, 4 * GBIT, 4 * GBIT + 1])
@pytest.mark.parametrize("link_bps", [None, 0, 4 * GBIT, 10 * GBIT, 25 * GBIT])
def test_queries_find_the_ports_that_are_overbooked(isp: Isp, booked: int, link_bps: int | None) -> None:
    port = link(isp, link_bps)
    Port.objects.filter(pk=port.pk).update(booked_bps=booked)
    found = overbooked_ports(Port.objects.filter(pk=port.pk)).exists()
    assert found == port_as_read().is_overbooked == (link_bps is not None and booked > link_bps)


def test_a_port_that_was_read_without_its_link_runs_no_hidden_statement(isp: Isp) -> None:
    port = Port.objects.get(pk=isp.ports[NAME].pk)
    for figure in ("link_bps", "bookable_now_bps", "free_bps", "is_slow", "is_overbooked"):
        with pytest.raises(LinkSpeedNotRead):
            getattr(port, figure)


def test_a_bond_that_lost_a_member_takes_no_more_than_is_left(isp: Isp, alice: User) -> None:
    vll = order(isp, alice, cir_bps=3 * GBIT).vll
    activate(vll)
    port = link(isp, 5 * GBIT)
    with pytest.raises(PortFull) as refused:
        another(isp, alice, cir_bps=2 * GBIT + 1)
    error = refused.value
    assert (error.free_bps, error.link_bps, error.speed_bps) == (2 * GBIT, 5 * GBIT, 10 * GBIT)
    assert "runs at 5 Gbit/s instead of 10 Gbit/s and has 2 Gbit/s left" in error.sentence
    another(isp, alice, cir_bps=2 * GBIT)
    port.refresh_from_db()
    assert port.booked_bps == 5 * GBIT


def test_what_is_booked_stays_and_can_only_shrink(isp: Isp, alice: User) -> None:
    vll = order(isp, alice, cir_bps=8 * GBIT).vll
    activate(vll)
    link(isp, 5 * GBIT)
    with pytest.raises(PortFull) as refused:
        modify(alice, vll, cir_bps=8 * GBIT + 1)
    assert refused.value.free_bps == 5 * GBIT
    modify(alice, vll, cir_bps=7 * GBIT)


@pytest.mark.parametrize(
    ("speed_bps", "otherwise"),
    [(None, {}), (10 * GBIT, {}), (25 * GBIT, {}), (GBIT, {"link_up": False}), (GBIT, {"admin_up": False})],
    ids=["unknown", "as agreed", "faster", "without link", "shut"],
)
def test_other_links_change_nothing(
    isp: Isp, alice: User, speed_bps: int | None, otherwise: dict[str, Any]
) -> None:
    port = link(isp, speed_bps, **otherwise)
    order(isp, alice, cir_bps=10 * GBIT)
    assert not alarms_found(Kind.PORT_SLOW)
    assert "at this speed" not in text(signed_in(alice).get(f"/ports/{port.pk}/"))


def test_a_preview_says_the_same_as_the_order(isp: Isp, alice: User) -> None:
    link(isp, 5 * GBIT)
    said = signed_in(alice).post("/orders/new/check/", fields(isp, cir="6"), headers={"hx-request": "true"})
    assert "runs at 5 Gbit/s instead of 10 Gbit/s" in text(said)
    port = port_as_read()
    with pytest.raises(PortFull) as refused:
        bandwidth_book(port=port, owner=None, side="a", cir_bps=6 * GBIT)
    assert refused.value.free_bps == 5 * GBIT
    bandwidth_book(port=port, owner=None, side="a", cir_bps=6 * GBIT, own_bps=6 * GBIT)


def test_a_preview_counts_what_is_left_at_the_speed_of_the_link(isp: Isp, alice: User) -> None:
    link(isp, 5 * GBIT)
    said = signed_in(alice).post("/orders/new/check/", fields(isp, cir="1"), headers={"hx-request": "true"})
    assert f"Then left on {NAME} 4 Gbit/s of 5 Gbit/s" in text(said)


def test_an_alarm_says_what_is_booked_and_what_is_left(isp: Isp, alice: User) -> None:
    activate(order(isp, alice, cir_bps=8 * GBIT).vll)
    link(isp, 9 * GBIT)
    assert alarm_texts(Kind.PORT_SLOW) == [
        f"{NAME}: 9 Gbit/s of 10 Gbit/s. 8 Gbit/s of the remaining 9 Gbit/s is booked."
    ]
    port = link(isp, 5 * GBIT)
    [alarm] = alarm_texts(Kind.PORT_SLOW)
    assert "5 Gbit/s of 10 Gbit/s. 8 Gbit/s is booked, but only 5 Gbit/s can be kept." in alarm
    page = text(signed_in(alice).get(f"/ports/{port.pk}/"))
    assert "The link runs at 5 Gbit/s." in page
    assert "have booked 8 Gbit/s, but only 5 Gbit/s can be kept at this speed" in page
    assert "Still bookable 0 bit/s" in page
    link(isp, 10 * GBIT)
    assert alarm_texts(Kind.PORT_SLOW) == []


def test_of_a_router_that_is_silent_or_a_port_of_nobody_there_is_no_alarm(isp: Isp) -> None:
    port = link(isp, GBIT)
    assert len(alarms_found(Kind.PORT_SLOW)) == 1
    ObservedRouter.objects.filter(router=port.router).update(reported_at=clock.now() - timedelta(hours=1))
    assert alarms_found(Kind.PORT_SLOW) == []
    ObservedRouter.objects.filter(router=port.router).update(reported_at=clock.now())
    Port.objects.filter(pk=port.pk).update(customer=None)
    assert alarms_found(Kind.PORT_SLOW) == []


@pytest.mark.parametrize(
    ("runs", "left"), [(10 * GBIT, 7 * GBIT), (5 * GBIT, 2 * GBIT), (2 * GBIT, 0), (None, 7 * GBIT)]
)
def test_every_figure_of_free_bandwidth_is_what_can_be_booked(
    isp: Isp, alice: User, nora: User, runs: int | None, left: int
) -> None:
    activate(order(isp, alice, cir_bps=3 * GBIT).vll)
    port = link(isp, runs)
    said = f"{left // GBIT} Gbit/s" if left else "0 bit/s"
    api = client(alice)
    one = api.get(f"/api/v1/ports/{port.pk}").json()
    [listed] = [each for each in api.get("/api/v1/ports").json()["results"] if each["id"] == port.pk]
    assert (one["free_bps"], listed["free_bps"]) == (left, left)
    assert (one["link_bps"], listed["link_bps"]) == (runs, runs)
    [full] = [
        each for each in client(nora).get("/api/v1/pools").json()["fullest_ports"] if each["id"] == port.pk
    ]
    assert full["free_bps"] == left
    preview = api.post("/api/v1/vlls/validate", another_document(isp), format="json").json()
    assert preview["a_end"]["free_bps"] == left
    in_all = f"{(runs or 10 * GBIT) // GBIT} Gbit/s"
    assert f"{NAME} – {said} of {in_all} free" in text(signed_in(alice).get("/orders/new/"))
    found = signed_in(alice).get("/orders/new/ports/", {"a_end-search": NAME})
    assert f"{NAME} – {said} of {in_all} free" in text(found)
    assert f"Still bookable {said}" in text(signed_in(alice).get(f"/ports/{port.pk}/"))
    page = signed_in(nora).get("/noc/pools/").content.decode()
    row = page[page.index(f">{NAME}</a>") :]
    free = re.search(r'data-label="Free"[^>]*>([^<]*)<', row)
    assert free
    assert free[1] == said


def another_document(isp: Isp) -> dict[str, Any]:
    ends = {
        f"{side}_end": {"port": isp.ports[port].pk, "tagging": "dot1q", "outer_vlan": 200}
        for side, port in (("a", NAME), ("z", "hippo:host-cust1"))
    }
    return {**ends, "svc_mtu": 1500, "cir_bps": GBIT, "transport": "auto", "description": ""}


def test_what_shrinks_on_an_overbooked_port_leaves_no_more_than_is_free(isp: Isp, alice: User) -> None:
    vll = order(isp, alice, cir_bps=8 * GBIT).vll
    activate(vll)
    link(isp, 5 * GBIT)
    port = port_as_read()
    assert (port.free_bps, port.free_after_bps(-GBIT), port.free_after_bps(-4 * GBIT)) == (0, 0, GBIT)


def test_the_fullest_ports_are_those_that_a_slow_link_fills(isp: Isp, alice: User, nora: User) -> None:
    activate(order(isp, alice, cir_bps=4 * GBIT).vll)
    link(isp, 4 * GBIT)
    fullest = client(nora).get("/api/v1/pools").json()["fullest_ports"]
    assert [each["port_name"] for each in fullest] == [NAME, "hippo:host-cust1"]
    assert alarm_texts(Kind.PORT_FULL) == [f"{NAME}: 4 Gbit/s of 4 Gbit/s"]


def test_a_link_of_no_speed_has_nothing_free(isp: Isp, alice: User, nora: User) -> None:
    activate(order(isp, alice, cir_bps=GBIT).vll)
    port = link(isp, 0)
    assert client(alice).get(f"/api/v1/ports/{port.pk}").json()["free_bps"] == 0
    assert alarm_texts(Kind.PORT_FULL) == [f"{NAME}: 1 Gbit/s of 0 bit/s"]


def health_of(vll: Vll) -> tuple[str, str]:
    """Return state and cause; the query for lists and the count of the overview have to agree."""
    found = known_health(Vll.objects.get(pk=vll.pk))
    assert found is not None
    queried = with_health_state(Vll.objects.filter(pk=vll.pk)).values_list("health_state", flat=True)
    assert list(queried) == [found.state.value]
    assert in_service_counts(Vll.objects.filter(pk=vll.pk)) == {found.state: 1}
    return found.state.value, found.cause


def port_check(vll: Vll) -> dict[str, Any]:
    document = diagnosis_of(Vll.objects.get(pk=vll.pk), now=clock.now()).as_document(for_noc=False)
    found: dict[str, Any] = next(each for each in document["checks"] if each["code"] == "a_port_link")
    return found | {"verdict": document["verdict"]["code"]}


def test_health_and_diagnosis_say_that_the_port_is_too_slow(isp: Isp, alice: User) -> None:
    vll = order(isp, alice, cir_bps=8 * GBIT).vll
    activate(vll)
    Vll.objects.filter(pk=vll.pk).update(oper_status="op-up")
    vll.ends.update(link_up=True)
    uptime_note(now=clock.now() - timedelta(minutes=5))
    uptime_note(now=clock.now())
    link(isp, 9 * GBIT)
    assert health_of(vll) == ("up", "")
    found = port_check(vll)
    assert (found["state"], found["evidence"]) == (
        "ok",
        "The link of port host-cust1 runs at 9 Gbit/s instead of 10 Gbit/s."
        " This is enough for the booked bandwidth.",
    )
    link(isp, 5 * GBIT)
    sentence = (
        "The port host-cust1 at the A end runs slower than agreed, and its lines have booked more than it "
        "carries."
    )
    assert health_of(vll) == ("degraded", sentence)
    found = port_check(vll)
    assert (found["state"], found["verdict"]) == ("broken", "a-port-slow")
    assert (
        "5 Gbit/s instead of 10 Gbit/s. Its lines have booked 8 Gbit/s, but only 5 Gbit/s"
        in found["evidence"]
    )
    assert sentence in text(signed_in(alice).get(f"/vlls/{vll.pk}/"))
    link(isp, 10 * GBIT)
    assert health_of(vll) == ("up", "")
