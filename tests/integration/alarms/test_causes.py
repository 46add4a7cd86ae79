"""Lines that are down for one cause are one alarm, which says how many they are and whose."""

from datetime import datetime, timedelta

import pytest

from portal.accounts.models import Customer, User
from portal.alarms.affected_lines import NAMED, lines_behind
from portal.alarms.kinds import Kind
from portal.alarms.models import Alarm
from portal.alarms.rounds import alarms_watch
from portal.core import clock
from portal.core.network.path_bfd import PathState
from portal.inventory.models import ObservedRouter, Port, Router, RouterCertificate, RouterSilence
from portal.vll.models import Order, TunnelPath, Vll, VllEnd
from tests.integration.isp import Isp, member
from tests.integration.orders import end, modify, order
from tests.integration.raised_alarms import alarms_raised
from tests.integration.router_answers import activate
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def now() -> datetime:
    return clock.now()


@pytest.fixture
def lines(isp: Isp, alice: User, bakery: Customer) -> dict[str, Vll]:
    """Two of the dairy's from rhino to hippo, and one of the bakery's."""
    baker = member("ben", bakery, "operator")
    found = {}
    for number, (name, user, ports) in enumerate(
        (("milk", alice, "host-cust1"), ("cheese", alice, "host-cust1"), ("bread", baker, "host-cust2"))
    ):
        Port.objects.filter(interface=ports).update(customer=user.memberships.get().customer)
        ends = {
            "a_end": end(isp, f"rhino:{ports}", outer=100 + number),
            "z_end": end(isp, f"hippo:{ports}", outer=100 + number),
        }
        found[name] = order(isp, user, description=name, **ends).vll
        activate(found[name])
    Vll.objects.update(oper_status="op-up")
    VllEnd.objects.update(link_up=True, observed_in_sync=True)
    return found


def take_down(*lines: Vll, **facts: object) -> None:
    """``facts``: of the A end."""
    ids = [line.pk for line in lines]
    Vll.objects.filter(pk__in=ids).update(oper_status="op-down", oper_since=clock.now())
    VllEnd.objects.filter(vll__in=ids, side="a").update(**facts)


def the_alarm() -> Alarm:
    return Alarm.objects.get(cleared_at=None)


def names_behind(alarm: Alarm) -> set[str]:
    return set(lines_behind(alarm.kind, alarm.object).values_list("description", flat=True))


def test_a_silent_router_is_one_alarm_for_all_its_lines(
    isp: Isp, lines: dict[str, Vll], now: datetime
) -> None:
    RouterSilence.objects.create(router=isp.routers["rhino"], since=now, counts_as_down=True)
    take_down(*lines.values())
    assert alarms_raised() == ["rhino is silent"]
    alarm = the_alarm()
    assert (alarm.lines, alarm.customers) == (3, 2)
    assert [(each["name"], each["customer"]) for each in alarm.first_lines] == [
        ("milk", "Alpine Dairy"),
        ("cheese", "Alpine Dairy"),
        ("bread", "Basel Bakery"),
    ]
    assert names_behind(alarm) == set(lines)


@pytest.mark.parametrize(("hangs", "headline"), [(False, "rhino has no VPP"), (True, "VPP hangs on rhino")])
def test_a_router_without_a_vpp_is_one_alarm_for_all_its_lines(
    isp: Isp, lines: dict[str, Vll], now: datetime, hangs: bool, headline: str
) -> None:
    take_down(*lines.values())
    rhino = ObservedRouter.objects.filter(router=isp.routers["rhino"])
    rhino.update(vpp_away_since=now, vpp_hangs=hangs)
    assert alarms_raised() == [headline]
    assert the_alarm().lines == 3


def test_a_port_without_link_is_one_alarm_for_the_lines_that_are_down_for_it(
    isp: Isp, lines: dict[str, Vll]
) -> None:
    take_down(lines["milk"], lines["cheese"], link_up=False)
    assert alarms_raised() == ["rhino:host-cust1 has no link"]
    alarm = the_alarm()
    assert (alarm.lines, alarm.customers) == (2, 1)
    assert names_behind(alarm) == {"milk", "cheese"}


def test_two_ports_without_link_are_two_alarms(isp: Isp, lines: dict[str, Vll]) -> None:
    take_down(lines["milk"], link_up=False)
    VllEnd.objects.filter(vll=lines["milk"]).update(link_up=False)
    assert alarms_raised() == ["hippo:host-cust1 has no link", "rhino:host-cust1 has no link"]


@pytest.mark.parametrize("facts", [{"reachable": False}, {"path_state": PathState.DOWN}])
def test_a_path_is_one_alarm_for_all_lines_on_it(
    isp: Isp, lines: dict[str, Vll], facts: dict[str, object]
) -> None:
    VllEnd.objects.filter(side="z").update(path_state=PathState.UP)
    take_down(*lines.values(), **facts)
    assert alarms_raised() == ["The path rhino – hippo is down"]
    alarm = the_alarm()
    assert (alarm.lines, alarm.customers, len(alarm.routers)) == (3, 2, 2)
    assert names_behind(alarm) == set(lines)


def test_one_router_alone_that_hears_nothing_takes_no_path_down(lines: dict[str, Vll]) -> None:
    """Its far end may not listen (portal.core.network.path_bfd.is_path_down)."""
    take_down(lines["milk"], path_state=PathState.DOWN)
    assert alarms_raised() == ["milk is down"]


def test_a_line_whose_ends_explain_nothing_is_an_alarm_itself(lines: dict[str, Vll]) -> None:
    take_down(lines["milk"])
    assert alarms_raised() == ["milk is down"]
    alarm = the_alarm()
    assert (alarm.lines, names_behind(alarm)) == (1, {"milk"})


def test_a_fault_of_another_router_has_an_alarm_next_to_a_silent_router(
    isp: Isp, lines: dict[str, Vll], now: datetime
) -> None:
    RouterSilence.objects.create(router=isp.routers["hippo"], since=now - timedelta(minutes=5))
    take_down(lines["milk"], link_up=False)
    take_down(lines["bread"])
    assert alarms_raised() == ["hippo is silent", "rhino:host-cust1 has no link"]


def test_a_black_hole_counts_the_lines_whose_packets_it_swallows(
    isp: Isp, lines: dict[str, Vll], now: datetime
) -> None:
    a, z = sorted((isp.routers["rhino"], isp.routers["hippo"]), key=lambda router: router.pk)
    TunnelPath.objects.create(
        a_router=a,
        z_router=z,
        family=4,
        round_trips_due_at=now,
        needed_ip_mtu=1568,
        verified_ip_mtu=1400,
        verified_at=now,
        black_hole_since=now,
    )
    assert alarms_raised() == [f"MTU black hole on {a} – {z}"]
    alarm = the_alarm()
    assert (alarm.lines, alarm.customers, names_behind(alarm)) == (3, 2, set(lines))


def test_lines_that_differ_on_one_router_are_one_alarm(isp: Isp, lines: dict[str, Vll]) -> None:
    Vll.objects.update(in_sync=False)
    VllEnd.objects.filter(side="a").update(observed_in_sync=False)
    assert alarms_raised() == ["rhino is not configured as it should be"]
    assert the_alarm().lines == 3


def test_a_line_that_an_order_changes_does_not_differ(alice: User, lines: dict[str, Vll]) -> None:
    for name in ("milk", "cheese"):
        modify(alice, Vll.objects.get(pk=lines[name].pk), cir_bps=5_000_000)
    Vll.objects.update(in_sync=False)
    VllEnd.objects.filter(side="a").update(observed_in_sync=False)
    alarms_raised()
    assert the_alarm().lines == 1


def test_only_the_first_lines_are_named_and_all_are_counted(
    isp: Isp, alice: User, lines: dict[str, Vll], now: datetime
) -> None:
    Port.objects.filter(interface="host-cust1").update(customer=alice.memberships.get().customer)
    for vlan in range(200, 200 + NAMED):
        ends = {
            "a_end": end(isp, "rhino:host-cust1", outer=vlan),
            "z_end": end(isp, "hippo:host-cust1", outer=vlan),
        }
        activate(order(isp, alice, cir_bps=1000, description=f"line {vlan}", **ends).vll)
    RouterSilence.objects.create(router=isp.routers["rhino"], since=now)
    alarms_watch(now=now)
    alarm = the_alarm()
    assert (alarm.lines, len(alarm.first_lines)) == (NAMED + 3, NAMED)


def test_trouble_and_orders_name_their_line(isp: Isp, alice: User, lines: dict[str, Vll]) -> None:
    modify(alice, Vll.objects.get(pk=lines["milk"].pk), cir_bps=5_000_000)
    Order.objects.filter(action="modify").update(alarmed_at=clock.now())
    assert alarms_raised(Kind.ORDER_OVERDUE) == ["The order for milk is overdue"]
    alarm = Alarm.objects.get(kind=Kind.ORDER_OVERDUE)
    assert (alarm.lines, alarm.first_lines[0]["name"]) == (1, "milk")


def test_a_certificate_that_was_not_renewed(isp: Isp, now: datetime) -> None:
    """By the newest that is good: an old one ends while another serves."""
    rhino = isp.routers["rhino"]
    ending = {"router": rhino, "issued_at": now, "fingerprint": "a", "serial": "1"}
    RouterCertificate.objects.create(**ending, expires_at=now + timedelta(days=20))
    revoked = {"serial": "2", "fingerprint": "b", "expires_at": now + timedelta(days=300), "revoked_at": now}
    RouterCertificate.objects.create(**(ending | revoked))
    assert alarms_raised() == ["The certificate of rhino ends soon"]
    good = {"serial": "3", "fingerprint": "c", "expires_at": now + timedelta(days=300)}
    RouterCertificate.objects.create(**(ending | good))
    assert alarms_raised() == []


def test_a_router_that_nobody_has_enrolled_yet_raises_no_alarm(isp: Isp, nora: User, now: datetime) -> None:
    rhino = isp.routers["rhino"]
    new = Router.objects.create(
        name="okapi", site=rhino.site, loopback4="10.255.0.77", agent_url="https://192.0.2.77:9443"
    )
    page = f"/noc/routers/{new.pk}/"
    assert alarms_raised() == []
    assert "Not enrolled yet" in text(signed_in(nora).get("/routers/"))
    steps = text(signed_in(nora).get(page))
    assert "Not enrolled yet" in steps
    assert "longline-agent enroll -portal" in steps
    certificate = RouterCertificate.objects.create(
        router=new, serial="1", fingerprint="1", issued_at=now, expires_at=now + timedelta(days=90)
    )
    assert alarms_raised() == [], "its agent has just been enrolled"
    assert "Not enrolled yet" not in text(signed_in(nora).get(page))
    assert "Never seen" in text(signed_in(nora).get("/routers/"))
    RouterCertificate.objects.filter(pk=certificate.pk).update(issued_at=now - timedelta(hours=1))
    assert alarms_raised() == ["okapi is silent"]
