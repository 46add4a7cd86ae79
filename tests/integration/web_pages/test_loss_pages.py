"""What is lost where, as the NOC, programs, Prometheus and customers see it."""

from datetime import datetime, timedelta

import pytest
from django.urls import reverse

from portal.accounts.models import User
from portal.alarms.kinds import Kind
from portal.core import clock
from portal.inventory.models import BackboneLink
from portal.metrics import families
from portal.telemetry.line_losses import EndDrops, end_drops
from portal.telemetry.reported_counters import EndCount, PolicerCount
from portal.vll.models import Vll
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.raised_alarms import alarm_texts, alarms_found
from tests.integration.telemetry.test_losses import of_interface, of_router, store_at
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def now() -> datetime:
    return clock.now()


@pytest.fixture
def link(isp: Isp) -> BackboneLink:
    return BackboneLink.objects.filter(a_router=isp.routers["rhino"])[0]


@pytest.fixture
def lossy(isp: Isp, link: BackboneLink, now: datetime) -> BackboneLink:
    """Its A side has lost one frame of a hundred, and its router has few buffers left."""
    seen = of_interface(
        link.a_interface, rx_packets=99_000, tx_packets=77_000, rx_miss=900, rx_errors=100, drops=5
    )
    own = of_router(no_such_tunnel=4321, buffers=16384, buffers_free=1000)
    store_at(isp, now - timedelta(seconds=20), (seen, of_interface("cust0", rx_miss=5000)), own, now=now)
    return link


def test_the_noc_is_alarmed_with_what_was_lost_and_why(lossy: BackboneLink, now: datetime) -> None:
    [said] = alarm_texts(Kind.LOSSES, now)
    assert said == (
        f"rhino:{lossy.a_interface}: 1 % in the last 10 minutes: missed: 900, broken: 100."
        " Received 99,000, sent 77,000."
    )
    [short] = alarm_texts(Kind.FEW_BUFFERS, now)
    assert short.startswith("rhino: Only 1,000 of 16,384 were free")
    later = now + timedelta(minutes=11)
    assert alarms_found(Kind.LOSSES, later) == alarms_found(Kind.FEW_BUFFERS, later) == []


def test_the_thresholds_are_settings(lossy: BackboneLink, now: datetime, settings: object) -> None:
    settings.LONGLINE_LOSS_ALARM_RATIO = 0.02  # type: ignore[attr-defined]
    settings.LONGLINE_BUFFER_ALARM_RATIO = 0.05  # type: ignore[attr-defined]
    assert alarms_found(Kind.LOSSES, now) == alarms_found(Kind.FEW_BUFFERS, now) == []


def test_the_pages_of_router_and_link_say_what_was_lost(lossy: BackboneLink, nora: User) -> None:
    page = text(signed_in(nora).get(reverse("web:noc-router", args=[lossy.a_router_id])))
    assert "What is lost, last 24 hours" in page
    assert f"{lossy.a_interface} 99 000 / 77 000 1 000" in page
    assert "Packets for a tunnel that does not exist 4 321" in page
    assert "1 000 of 16 384" in page
    page = text(signed_in(nora).get(reverse("web:noc-links-change", args=[lossy.pk])))
    assert f"rhino:{lossy.a_interface} 99 000" in page


def test_programs_of_the_noc_alone_read_losses(lossy: BackboneLink, nora: User, alice: User) -> None:
    router_url, link_url = f"/api/v1/routers/{lossy.a_router_id}/losses", f"/api/v1/links/{lossy.pk}/losses"
    answer = client(nora).get(router_url, {"step": "300"}).json()
    found = {each["name"]: each for each in answer["interfaces"]}
    assert (found[lossy.a_interface]["link"], found["cust0"]["link"]) == (lossy.pk, None)
    assert found[lossy.a_interface]["totals"]["rx_miss"] == 900
    sides = client(nora).get(link_url).json()
    assert (sides["a_side"]["totals"]["rx_errors"], sides["z_side"]["totals"]["rx_errors"]) == (100, None)
    for url in (router_url, link_url):
        assert client(alice).get(url).status_code == 403
        refused = client(nora).get(url, {"from": "2030-01-01T00:00:00Z", "to": "2029-01-01T00:00:00Z"})
        assert refused.status_code == 422


def test_prometheus_reads_ratios(lossy: BackboneLink, now: datetime) -> None:
    lost, buffers = families.loss_families(now)
    assert {(each.labels["router"], each.labels["interface"]): each.value for each in lost.samples} == {
        ("rhino", lossy.a_interface): 0.01
    }
    assert [(each.labels["router"], each.value) for each in buffers.samples] == [("rhino", 1000 / 16384)]


def count(vll: Vll, *, drops: int | None, violate: int | None = None, out: int | None = None) -> EndCount:
    policer = None if violate is None else PolicerCount(0, 60, 0, 0, 0, violate)
    return EndCount(str(vll.pk), "a", 900, 90, 800, 80, policer, in_drops=drops, out_drops=out)


def test_a_customer_reads_what_the_routers_dropped_in_words(isp: Isp, alice: User, now: datetime) -> None:
    vll = order(isp, alice).vll

    def page() -> str:
        return text(signed_in(alice).get(reverse("web:vll", args=[vll.pk])))

    assert "last 24 hours" not in page()
    store_at(isp, now - timedelta(seconds=40), ends=(count(vll, drops=30, violate=30, out=0),), now=now)
    assert "In the last 24 hours the routers at both ends dropped none of your frames." in page()
    store_at(isp, now - timedelta(seconds=30), ends=(count(vll, drops=31, violate=30, out=2),), now=now)
    said = page()
    assert "1 frame that you sent at the A end did not get past the router there." in said
    assert "2 frames that arrived for the A end could not be handed over to your port." in said


def test_programs_read_what_the_routers_dropped_too(isp: Isp, alice: User, now: datetime) -> None:
    vll = order(isp, alice).vll
    store_at(isp, now - timedelta(seconds=40), ends=(count(vll, drops=31, violate=30, out=2),), now=now)
    answer = client(alice).get(f"/api/v1/vlls/{vll.pk}/loss").json()
    assert answer["a_end"] == {"dropped_in": 1, "dropped_out": 2}
    assert answer["z_end"] == {"dropped_in": None, "dropped_out": None}


def test_whose_drops_are_unknown_are_nobodys(isp: Isp, alice: User, now: datetime) -> None:
    vll = order(isp, alice).vll
    begin = now - timedelta(minutes=20)
    store_at(isp, begin, ends=(count(vll, drops=30, violate=28),), now=now)
    store_at(isp, begin + timedelta(minutes=10), ends=(count(vll, drops=500),), now=now)
    found = end_drops(vll=vll, since=now - timedelta(days=1), until=now, now=now)
    assert found == {"a": EndDrops(2, None), "z": EndDrops(None, None)}
