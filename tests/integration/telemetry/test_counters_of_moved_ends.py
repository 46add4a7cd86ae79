"""Counters of a moved end: each router's counts belong to the line for the time when the end was there."""

from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest

from portal.accounts.models import User
from portal.core import clock
from portal.telemetry.counter_ingest import Stored, counters_store
from portal.telemetry.models import Sample
from portal.telemetry.reported_counters import CounterReport
from portal.telemetry.throughput import throughput
from portal.vll.models import Vll
from portal.vll.operations.modify_line import order_modify
from tests.integration.isp import Isp
from tests.integration.router_answers import activate, left, refuse
from tests.integration.telemetry.test_counter_ingest import ms, sample

pytestmark = pytest.mark.django_db
BOOTS = {"rhino": uuid4(), "hippo": uuid4()}


@pytest.fixture
def now() -> datetime:
    """Return the time in whole seconds, as agents count in milliseconds."""
    return clock.now().replace(microsecond=0)


def move(isp: Isp, alice: User, vll: Vll, at: datetime) -> None:
    """Move end A from Rhino to Hippo."""
    changes = {"a_end": {"port": isp.ports["hippo:host-cust2"].pk}}
    order_modify(user=alice, vll=vll, changes=changes, now=at)
    vll.refresh_from_db()


def report(
    isp: Isp, router: str, vll: Vll, to: datetime, *, now: datetime, seq: int = 1, side: str = "a"
) -> Stored:
    said = CounterReport(
        boot_id=str(BOOTS[router]),
        sent_ms=ms(now),
        simulated=False,
        dropped=0,
        samples=(sample(vll, to, seq=seq, side=side),),
    )
    return counters_store(router=isp.routers[router], report=said, now=now)


def routers_of(vll: Vll) -> list[tuple[datetime, int]]:
    return list(Sample.objects.filter(vll_id=vll.pk).order_by("to_at").values_list("to_at", "router_id"))


@pytest.mark.parametrize("confirmed", [False, True])
def test_late_samples_from_before_the_move_are_stored(
    isp: Isp, alice: User, vll: Vll, now: datetime, confirmed: bool
) -> None:
    moved_at = now - timedelta(hours=5)
    move(isp, alice, vll, moved_at)
    if confirmed:
        activate(vll)
        left(vll, "a", isp.routers["rhino"])
    before = moved_at - timedelta(hours=1)
    assert report(isp, "rhino", vll, before, now=now) == Stored(1, 0, 0, 0)
    assert report(isp, "rhino", vll, before, now=now) == Stored(0, 1, 0, 0)
    assert report(isp, "hippo", vll, now, now=now) == Stored(1, 0, 0, 0)
    assert routers_of(vll) == [(before, isp.routers["rhino"].pk), (now, isp.routers["hippo"].pk)]


@pytest.mark.parametrize(("to_s", "accepted"), [(0, 1), (9, 1), (10, 0), (11, 0), (3600, 0)])
def test_old_routers_samples_from_after_the_move_are_ignored(
    isp: Isp, alice: User, vll: Vll, now: datetime, to_s: int, accepted: int
) -> None:
    moved_at = now - timedelta(hours=2)
    move(isp, alice, vll, moved_at)
    stored = report(isp, "rhino", vll, moved_at + timedelta(seconds=to_s), now=now)
    assert (stored.accepted, stored.rejected) == (accepted, 1 - accepted)


def test_undone_move_keeps_each_routers_time(isp: Isp, alice: User, vll: Vll, now: datetime) -> None:
    move(isp, alice, vll, now - timedelta(hours=2))
    refuse(vll, "a")
    assert vll.ends.get(side="a").port.router == isp.routers["rhino"]
    assert report(isp, "hippo", vll, now - timedelta(hours=1), now=now).accepted == 1
    assert report(isp, "hippo", vll, now + timedelta(seconds=60), now=now, seq=2).rejected == 1
    assert report(isp, "rhino", vll, now, now=now, seq=3).accepted == 1


def test_move_affects_only_its_end_and_fills_no_gap(isp: Isp, alice: User, vll: Vll, now: datetime) -> None:
    moved_at = now - timedelta(minutes=10)
    move(isp, alice, vll, moved_at)
    assert report(isp, "rhino", vll, moved_at, now=now, side="z").rejected == 1
    report(isp, "rhino", vll, moved_at, now=now)
    drawn = throughput(vll=vll, since=moved_at - timedelta(minutes=1), until=now, step_s=60, now=now)
    assert len([point for point in drawn["a_end"] if point[1] is not None]) <= 2


def test_samples_of_a_router_that_never_had_the_end_are_ignored(
    isp: Isp, alice: User, vll: Vll, now: datetime
) -> None:
    move(isp, alice, vll, now - timedelta(hours=2))
    said = CounterReport(str(UUID(int=1)), ms(now), False, 0, (sample(vll, now - timedelta(hours=3)),))
    assert counters_store(router=isp.routers["zebra"], report=said, now=now).rejected == 1
