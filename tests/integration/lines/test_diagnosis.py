"""The diagnosis of a line: current facts, shown to permitted readers and reported to the NOC."""

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.accounts.models import User
from portal.alarms.kinds import Kind
from portal.core import clock
from portal.diagnosis.diagnosis import diagnosis_of
from portal.diagnosis.errors import TroubleIsReported
from portal.diagnosis.models import TroubleReport
from portal.diagnosis.trouble_reports import trouble_report
from portal.events.models import Event
from portal.inventory.models import ObservedInterface, ObservedRouter, Port, Router
from portal.notifications.event_fanout import events_fan_out
from portal.notifications.mail_delivery import mail_send
from portal.notifications.models import Mail
from portal.telemetry.counter_ingest import counters_store
from portal.telemetry.reported_counters import CounterReport, CounterSample, EndCount, PolicerCount
from portal.telemetry.router_events import EventReport, ReportedEvent, router_events_store
from portal.telemetry.router_silences import uptime_note
from portal.vll.models import Vll, VllEnd
from portal.vll.operations.modify_line import order_suspend
from portal.vll.queries import unchanged_since
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import Isp
from tests.integration.observed_reports import BOOT
from tests.integration.orders import modify, order
from tests.integration.raised_alarms import alarm_texts
from tests.integration.router_answers import activate
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def line(isp: Isp, alice: User) -> Vll:
    """Return a line in service without any fault."""
    vll = order(isp, alice).vll
    activate(vll)
    now = clock.now()
    settle(vll, at=now - timedelta(hours=1))
    uptime_note(now=now)
    VllEnd.objects.filter(vll=vll).update(link_up=True, reachable=True, observed_in_sync=True)
    ObservedRouter.objects.update(reported_at=now, vpp_connected=True)
    for router, side in (("rhino", "a"), ("hippo", "z")):
        count(isp, vll, router, side, now)
    vll.refresh_from_db()
    return vll


def settle(vll: Vll, *, at: datetime) -> None:
    """Set the time of the line's last change, by an order or in its state."""
    with connection.cursor() as cursor:
        # A finished order never changes.
        cursor.execute("SET LOCAL session_replication_role = replica")
        vll.orders.update(state_at=at)
        cursor.execute("SET LOCAL session_replication_role = DEFAULT")
    Vll.objects.filter(pk=vll.pk).update(in_sync_since=at)


def count(
    isp: Isp, vll: Vll, router: str, side: str, now: datetime, frames: int = 30, dropped: int = 0
) -> None:
    """Store an agent's counts of the last 10 s."""
    until = int(now.timestamp() * 1000)
    policer = PolicerCount(100 * frames, frames, 0, 0, 100 * dropped, dropped)
    ends = (EndCount(str(vll.pk), side, 100 * frames, frames, 100, 1, policer),)
    sample = CounterSample(until, until - 10_000, until, ends)
    report = CounterReport(BOOT, until, simulated=False, dropped=0, samples=(sample,))
    counters_store(router=isp.routers[router], report=report, now=now)


def send_mails() -> None:
    """Send the mails of all events so far."""
    events_fan_out(now=clock.now())
    for mail in Mail.objects.filter(state=Mail.State.PENDING):
        mail_send(mail_id=mail.pk, now=clock.now())


def verdict(vll: Vll, *, now: datetime | None = None) -> str:
    return diagnosis_of(Vll.objects.get(pk=vll.pk), now=now or clock.now()).verdict.code


def test_each_single_fault_is_found_from_stored_facts(isp: Isp, alice: User, line: Vll) -> None:
    assert verdict(line) == "in-order"
    a, z = (VllEnd.objects.filter(vll=line, side=side) for side in "az")
    rhino, hippo = (ObservedRouter.objects.filter(router__name=name) for name in ("rhino", "hippo"))
    now = clock.now()
    faults: list[tuple[Any, dict[str, Any], dict[str, Any], str]] = [
        (a, {"link_up": False}, {"link_up": True}, "a-port-down"),
        (z, {"link_up": False}, {"link_up": True}, "z-port-down"),
        (z, {"reachable": False}, {"reachable": True}, "path-down"),
        (a, {"observed_in_sync": False}, {"observed_in_sync": True}, "a-not-as-wanted"),
        (z, {"drift": [{"object": "x"}]}, {"drift": []}, "z-not-as-wanted"),
        (rhino, {"vpp_connected": False}, {"vpp_connected": True}, "a-vpp-down"),
        (hippo, {"vpp_hangs": True}, {"vpp_hangs": False}, "z-vpp-down"),
        (rhino, {"reported_at": now - timedelta(minutes=1)}, {"reported_at": now}, "a-router-silent"),
    ]
    for rows, broken, repaired, code in faults:
        assert rows.update(**broken) == 1
        assert verdict(line) == code
        rows.update(**repaired)
        assert verdict(line) == "in-order"
    Router.objects.filter(name="hippo").update(locked_since=now)
    assert verdict(line) == "z-maintenance"
    z.update(link_up=False)
    assert verdict(line) == "z-maintenance", "maintenance explains the faults on its router"
    z.update(link_up=True)
    Router.objects.update(locked_since=None)
    later = now + timedelta(seconds=1)
    count(isp, line, "rhino", "a", later, frames=0)
    assert verdict(line, now=later) == "a-no-frames-in"
    count(isp, line, "rhino", "a", later + timedelta(seconds=1), dropped=3)
    assert verdict(line, now=later) == "a-policed"
    assert verdict(line, now=now + timedelta(minutes=5)) == "portal-away"
    happened = ReportedEvent(
        1, int(now.timestamp() * 1000), "end.vlan_restored", None, str(line.pk), "a", None, ""
    )
    report = EventReport(BOOT, 1, (happened,))
    router_events_store(router=isp.routers["rhino"], report=report, now=now)
    count(isp, line, "rhino", "a", later + timedelta(seconds=2))
    assert verdict(line, now=later) == "a-vlan-was-taken"
    sentence = diagnosis_of(Vll.objects.get(pk=line.pk), now=later).verdict.sentence
    assert "rhino tried to use this line's VLAN at the A end" in sentence
    assert f"{now:%H:%M} UTC" in sentence
    Event.objects.filter(kind="vll.vlan_restored").update(at=now - timedelta(minutes=15))
    assert verdict(line, now=later) == "in-order"
    order_suspend(user=alice, vll=line, now=clock.now())
    assert verdict(line) == "order-under-way"
    activate(line)
    assert verdict(line) == "suspended"


def test_frames_before_the_last_change_are_ignored(isp: Isp, alice: User, line: Vll) -> None:
    begin = clock.now()
    count(isp, line, "rhino", "a", begin + timedelta(seconds=6), frames=0, dropped=3)
    assert verdict(line, now=begin + timedelta(seconds=6)) == "a-policed"
    settle(line, at=begin)
    at = begin + timedelta(seconds=6)
    assert verdict(line, now=at) == "in-order", "the report began before the change"
    at = begin + timedelta(seconds=17)
    count(isp, line, "rhino", "a", at, frames=0)
    assert verdict(line, now=at) == "in-order", "one report is too little evidence"
    at = begin + timedelta(seconds=28)
    count(isp, line, "rhino", "a", at, frames=0)
    assert verdict(line, now=at) == "a-no-frames-in"


def test_page_shows_no_rate_from_before_the_last_change(alice: User, line: Vll) -> None:
    def since(shown: str) -> str | None:
        found = re.search(r'<dd class="ll-now" data-now="(\d+)"', shown)
        return found and found[1]

    page = signed_in(alice)
    changed = unchanged_since(line, line.orders.get())
    assert changed is not None
    assert since(page.get(f"/vlls/{line.pk}/").content.decode()) == str(int(changed.timestamp()))
    order_suspend(user=alice, vll=line, now=clock.now())
    activate(line)
    assert since(page.get(f"/vlls/{line.pk}/").content.decode()) is None


def test_finished_order_counts_as_a_change(alice: User, line: Vll) -> None:
    before = unchanged_since(line, line.orders.get())
    assert before is not None
    changed = modify(alice, line, cir_bps=2000)
    activate(line)
    changed.refresh_from_db()
    after = unchanged_since(line, changed)
    assert after is not None
    assert after > before


def statements_of_a_diagnosis(vll: Vll) -> int:
    with CaptureQueriesContext(connection) as captured:
        diagnosis_of(Vll.objects.get(pk=vll.pk), now=clock.now())
    return len(captured)


def test_statements_are_few_and_equal_for_every_line(line: Vll) -> None:
    statements = statements_of_a_diagnosis(line)
    assert statements <= 12
    for port in Port.objects.filter(vll_ends__vll=line):
        link = {"admin_up": True, "link_up": True, "speed_bps": port.speed_bps // 2}
        ObservedInterface.objects.update_or_create(
            router_id=port.router_id, name=port.interface, defaults=link
        )
    assert statements_of_a_diagnosis(line) == statements


def test_api_shows_the_diagnosis_to_readers_of_the_line(
    alice: User, bob: User, charlie: User, nora: User, line: Vll
) -> None:
    address = f"/api/v1/vlls/{line.pk}/diagnosis"
    VllEnd.objects.filter(vll=line, side="a").update(drift=[{"object": "host-cust1.100", "field": "mtu"}])
    found = client(bob).get(address).json()
    assert found["verdict"]["code"] == "a-not-as-wanted"
    [broken] = [check for check in found["checks"] if check["state"] == "broken"]
    assert (broken["code"], broken["detail"]) == ("a_configuration", "")
    assert broken["evidence"] == "rhino is not configured as ordered."
    [broken] = [check for check in client(nora).get(address).json()["checks"] if check["state"] == "broken"]
    assert "host-cust1.100" in broken["detail"]
    assert client(charlie).get(address).status_code == 404


def test_page_shows_the_diagnosis_and_details_only_to_the_noc(alice: User, nora: User, line: Vll) -> None:
    page = f"/vlls/{line.pk}/diagnosis/"
    VllEnd.objects.filter(vll=line, side="z").update(drift=[{"object": "host-cust1.100", "field": "mtu"}])
    shown = text(signed_in(alice).get(page))
    assert "hippo, at the Z end, is not configured as ordered." in shown
    assert "host-cust1.100" not in shown
    assert "host-cust1.100" in text(signed_in(nora).get(page))
    assert f'hx-get="{page}"' in signed_in(alice).get(f"/vlls/{line.pk}/").content.decode()


def test_trouble_report_keeps_the_finding_until_the_noc_closes_it(
    alice: User, bob: User, nora: User, charlie: User, line: Vll
) -> None:
    VllEnd.objects.filter(vll=line, side="z").update(link_up=False)
    pages = signed_in(bob)
    response = pages.post(f"/vlls/{line.pk}/diagnosis/report/", {"note": "Nothing arrives since noon"})
    assert response.status_code == 302
    [report] = TroubleReport.objects.all()
    assert (report.reported_by, report.note) == ("bob", "Nothing arrives since noon")
    assert report.finding["verdict"]["code"] == "z-port-down"
    assert "z_port_link" in {check["code"] for check in report.finding["checks"]}
    [alarm] = alarm_texts(Kind.TROUBLE)
    assert "Nothing arrives since noon" in alarm
    assert "The port host-cust1 at the Z end has no link." in alarm

    with pytest.raises(TroubleIsReported):
        trouble_report(user=alice, vll=line, note="", now=clock.now())
    close = f"/noc/trouble/{report.pk}/close/"
    assert pages.post(close).status_code == 403
    assert "Close the report" in text(signed_in(nora).get(f"/vlls/{line.pk}/diagnosis/"))
    signed_in(nora).post(close)
    report.refresh_from_db()
    assert report.closed_by == "nora"
    assert "The NOC closed the last trouble report" in text(pages.get(f"/vlls/{line.pk}/diagnosis/"))

    address = f"/api/v1/vlls/{line.pk}/trouble-reports"
    again = client(alice).post(address, {"note": "Still"}, format="json")
    assert again.status_code == 201
    assert client(alice).post(address, {}, format="json").status_code == 409
    assert client(charlie).post(address, {}, format="json").status_code == 404
    assert client(alice).post(address, {"severity": 1}, format="json").status_code == 422
    [newest, older] = client(alice).get(address).json()["results"]
    assert (newest["note"], older["closed_by"]) == ("Still", "nora")
    assert client(alice).post(f"/api/v1/trouble-reports/{newest['id']}/close").status_code == 403
    closed = client(nora).post(f"/api/v1/trouble-reports/{newest['id']}/close")
    assert (closed.status_code, closed.json()["closed_by"]) == (200, "nora")
    assert client(nora).post(f"/api/v1/trouble-reports/{newest['id']}/close").status_code == 409


def test_noc_gets_a_mail_and_the_reporter_one_on_closure(
    alice: User, nora: User, line: Vll, mailoutbox: list[Any]
) -> None:
    User.objects.filter(pk=nora.pk).update(email="nora@noc.example")
    User.objects.filter(pk=alice.pk).update(email="alice@dairy.example")
    events_fan_out(now=clock.now())
    Mail.objects.all().delete()
    report = trouble_report(user=alice, vll=line, note="It stutters", now=clock.now())
    send_mails()
    [mail] = mailoutbox
    assert mail.to == ["nora@noc.example"]
    assert mail.subject == "[Longline] Trouble reported: ZRH-AMS"
    for sentence in ("It stutters", "As far as the portal can see, everything", "rhino reports"):
        assert sentence in mail.body
    client(nora).post(f"/api/v1/trouble-reports/{report.pk}/close")
    send_mails()
    assert [each.to for each in mailoutbox[1:]] == [["alice@dairy.example"]]


def test_change_pending_approval_is_no_fault(isp: Isp, alice: User, line: Vll) -> None:
    line.customer.approve_up_to_bps = 1
    line.customer.save()
    modify(alice, line, cir_bps=2 * 10**9)
    assert verdict(line) == "in-order"
