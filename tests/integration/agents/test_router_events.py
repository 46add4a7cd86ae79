"""Agents' events: stored once, dated no later than now, strict in form."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import pytest
from django.db import connection

from portal.accounts.models import User
from portal.api.agent_api import _EventsDocument
from portal.core import clock
from portal.core.strict_json import Invalid, reader
from portal.events.models import Event
from portal.telemetry.router_events import EventReport, ReportedEvent, router_events_store
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.web_pages.browser import signed_in, text

REPORT = Path(__file__).parents[2] / "contract" / "reports" / "events.json"
BOOT = "d3f9d3d2-61b6-4c5a-8f53-0d3e6b6a9f10"
read = reader(_EventsDocument, of_others=True)


def happening(seq: int, at_ms: int | None = None, kind: str = "interface.down") -> ReportedEvent:
    at_ms = int(clock.now().timestamp() * 1000) - 5000 if at_ms is None else at_ms
    return ReportedEvent(seq, at_ms, kind, "host-cust1", None, None, None, None)


def store(isp: Isp, *seqs: int, boot: str = BOOT, router: str = "rhino") -> int:
    return take(isp, *map(happening, seqs), boot=boot, router=router)


def take(isp: Isp, *events: ReportedEvent, boot: str = BOOT, router: str = "rhino") -> int:
    report = EventReport(boot_id=boot, sent_ms=1, events=events)
    return router_events_store(router=isp.routers[router], report=report, now=clock.now())


def decoded(**changes: Any) -> EventReport:
    report = json.loads(REPORT.read_text())
    report["events"] = [report["events"][0] | changes]
    return read(json.dumps(report).encode())


@pytest.mark.django_db
def test_a_repeated_event_is_stored_once(isp: Isp) -> None:
    assert store(isp, 1, 2) == 2
    assert store(isp, 2, 3) == 1
    events = Event.objects.filter(router_id=isp.routers["rhino"].pk).order_by("id")
    assert [event.data["seq"] for event in events] == [1, 2, 3]
    assert {event.kind for event in events} == {"router.interface.down"}
    assert events[0].data["interface"] == "host-cust1"


@pytest.mark.django_db
def test_another_run_and_another_router_count_for_themselves(isp: Isp) -> None:
    assert store(isp, 1) == store(isp, 1, boot=str(uuid4())) == store(isp, 1, router="hippo") == 1


@pytest.mark.django_db(transaction=True)
def test_of_the_same_report_twice_at_once_one_is_stored(isp: Isp) -> None:
    def send(_: int) -> int:
        try:
            return store(isp, *range(1, 51))
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(send, range(4))) == 50
    assert Event.objects.filter(kind__startswith="router.").count() == 50


@pytest.mark.django_db
@pytest.mark.parametrize("ahead_ms", [1000, 10**12, 2**52])
def test_nothing_happens_in_the_future(isp: Isp, ahead_ms: int) -> None:
    now = clock.now()
    at_ms = int(now.timestamp() * 1000) + ahead_ms
    report = EventReport(boot_id=BOOT, sent_ms=1, events=(happening(1, at_ms),))
    router_events_store(router=isp.routers["rhino"], report=report, now=now)
    event = Event.objects.get(kind="router.interface.down")
    assert event.at == now
    assert event.data["at_ms"] == at_ms


@pytest.mark.django_db
def test_removed_vlan_is_an_event_only_on_the_lines_of_its_router(isp: Isp, alice: User) -> None:
    line = order(isp, alice).vll
    at_ms = int(clock.now().timestamp() * 1000) - 5000

    def restored(seq: int, vll: object = line.pk, side: Literal["a", "z"] | None = "a") -> ReportedEvent:
        where = None if vll is None else str(vll)
        return ReportedEvent(seq, at_ms, "end.vlan_restored", None, where, side, None, "since noon")

    strange = [restored(1, uuid4()), restored(2, side="z"), restored(3, None), restored(4, side=None)]
    take(isp, *strange)
    assert not Event.objects.filter(kind="vll.vlan_restored").exists()
    for _ in range(2):
        take(isp, restored(5))
    [event] = Event.objects.filter(kind="vll.vlan_restored")
    assert (event.vll_id, event.customer_id, event.router_id) == (line.pk, line.customer_id, None)
    assert event.data == {"end": "a", "router": "rhino"}
    assert int(event.at.timestamp() * 1000) == at_ms
    assert "arrive again; somebody had blocked them" in text(signed_in(alice).get(f"/vlls/{line.pk}/"))


@pytest.mark.django_db
def test_a_rebuild_is_an_event_that_the_customer_and_the_noc_see(isp: Isp, alice: User, nora: User) -> None:
    line = order(isp, alice).vll
    at_ms = int(clock.now().timestamp() * 1000) - 5000
    take(isp, ReportedEvent(1, at_ms, "end.vlan_rebuilt", None, str(line.pk), "a", None, "seen 7 times"))
    take(isp, ReportedEvent(2, at_ms, "end.vlan_not_restored", None, str(line.pk), "a", None, "no frame"))
    [event] = Event.objects.filter(vll_id=line.pk, kind__startswith="vll.vlan_")
    assert (event.kind, event.customer_id) == ("vll.vlan_rebuilt", line.customer_id)
    assert "frames were lost for a moment" in text(signed_in(alice).get(f"/vlls/{line.pk}/"))
    router = text(signed_in(nora).get(f"/noc/routers/{isp.routers['rhino'].pk}/"))
    assert "An end's sub-interface was deleted and created again" in router.replace("’", "'")
    assert "no frame has arrived since" in router


def test_the_document_of_the_contract_is_valid() -> None:
    assert read(REPORT.read_bytes()).events


def test_event_that_occurs_twice_in_a_report_is_refused() -> None:
    report = json.loads(REPORT.read_text())
    report["events"] = [report["events"][0]] * 2
    with pytest.raises(Invalid) as refused:
        read(json.dumps(report).encode())
    fault = refused.value.fault
    assert (fault["pointer"], fault["code"]) == ("/events/1/seq", "duplicate")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"kind": "vll.active"}, "unknown_value"),
        ({"seq": 0}, "out_of_range"),
        ({"at_ms": 2**53 + 1}, "out_of_range"),
        ({"detail": 7}, "type"),
        ({"vll": "6F0B2C52-7C0E-4D3A-9A34-0B8F0F3C1A01"}, "out_of_range"),
        ({"end": "b"}, "unknown_value"),
        ({"router": "hippo"}, "unknown_field"),
    ],
)
def test_what_the_contract_does_not_know_is_refused(change: dict[str, Any], code: str) -> None:
    with pytest.raises(Invalid) as refused:
        decoded(**change)
    assert refused.value.fault["code"] == code


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("said", "kept"),
    [("a\u0000b", "a\ufffdb"), ("\ud800", "\ufffd"), ("\x1b[31m", "\ufffd[31m"), ("x" * 1001, "x" * 1000)],
)
def test_odd_characters_cost_no_event(isp: Isp, said: str, kept: str) -> None:
    take(isp, *decoded(detail=said).events)
    assert Event.objects.get(kind__startswith="router.").data["detail"] == kept
