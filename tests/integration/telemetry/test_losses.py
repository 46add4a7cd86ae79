"""Losses: stored once, rolled up exactly as counted, and never estimated."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from portal.accounts.models import User
from portal.inventory.models import BackboneLink
from portal.telemetry.buckets import rolled_up, starts_of
from portal.telemetry.counter_ingest import counters_store
from portal.telemetry.models import Sample
from portal.telemetry.partitioned_tables import FIVE_MINUTES, partitions_keep
from portal.telemetry.reported_counters import (
    CounterReport,
    CounterSample,
    EndCount,
    InterfaceCount,
    PolicerCount,
    RouterCount,
)
from portal.telemetry.rollups import roll_up
from portal.telemetry.router_losses import (
    link_losses,
    losing,
    losses_roll_up,
    recent_buffers,
    recent_losses,
    router_losses,
    short_of_buffers,
)
from tests.integration.isp import Isp
from tests.integration.orders import order

pytestmark = pytest.mark.django_db
START = datetime(2026, 3, 1, 22, tzinfo=UTC)
DONE = START + timedelta(hours=1)
BOOT = UUID("d3f9d3d2-61b6-4c5a-8f53-0d3e6b6a9f10")


def of_interface(name: str, **counts: int) -> InterfaceCount:
    nothing = dict.fromkeys(InterfaceCount.__struct_fields__[1:], 0)
    return InterfaceCount(name=name, **nothing | counts)


def of_router(**counts: int | None) -> RouterCount:
    return RouterCount(**dict.fromkeys(RouterCount.__struct_fields__) | counts)


def store(
    isp: Isp,
    *samples: tuple[int, int, tuple[InterfaceCount, ...], RouterCount | None],
    ends: tuple[EndCount, ...] = (),
    name: str = "rhino",
    now: datetime = DONE,
) -> None:
    """Store samples: begin and end (s after START) and their counts. The begin is the sample's number."""
    counted = tuple(
        CounterSample(
            begin,
            int(START.timestamp() + begin) * 1000,
            int(START.timestamp() + until) * 1000,
            ends,
            interfaces,
            own,
        )
        for begin, until, interfaces, own in samples
    )
    report = CounterReport(str(BOOT), int(now.timestamp() * 1000), False, 0, counted)
    counters_store(router=isp.routers[name], report=report, now=now)


def store_at(
    isp: Isp,
    at: datetime,
    interfaces: tuple[InterfaceCount, ...] = (),
    own: RouterCount | None = None,
    *,
    ends: tuple[EndCount, ...] = (),
    now: datetime,
) -> None:
    """Store a sample of Rhino that begins at ``at`` and lasts ten seconds."""
    at_ms = int(at.timestamp() * 1000)
    sample = CounterSample(at_ms // 1000, at_ms, at_ms + 10_000, ends, interfaces, own)
    report = CounterReport(str(BOOT), int(now.timestamp() * 1000), False, 0, (sample,))
    counters_store(router=isp.routers["rhino"], report=report, now=now)


def losses(isp: Isp, **more: Any) -> dict[str, Any]:
    span: dict[str, Any] = {"since": START, "until": START + timedelta(minutes=10), "now": DONE}
    return router_losses(router=isp.routers["rhino"], **span | more)


def stale() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM telemetry_stale_loss_bucket")
        return int(cursor.fetchone()[0])


def test_repeated_counts_count_once(isp: Isp) -> None:
    sample = (0, 10, (of_interface("bb0", rx_packets=90, rx_miss=10),), of_router(no_such_tunnel=3))
    store(isp, sample)
    store(isp, sample)
    answer = losses(isp)
    (bb0,) = answer["interfaces"]
    assert (bb0["name"], bb0["totals"]["rx_packets"], bb0["totals"]["rx_miss"]) == ("bb0", 90, 10)
    assert answer["router"]["totals"]["no_such_tunnel"] == 3


def test_uncounted_time_is_no_zero(isp: Isp) -> None:
    store(isp, (0, 10, (of_interface("bb0"),), of_router(no_such_tunnel=0)))
    answer = losses(isp, step_s=300)
    (bb0,) = answer["interfaces"]
    assert bb0["totals"] == dict.fromkeys(bb0["columns"], 0)
    assert bb0["points"][1] == [START.timestamp() + 300, *[None] * 7]
    assert answer["router"]["totals"] == {
        "no_such_tunnel": 0,
        "fragments_sent": None,
        "reassembled": None,
        "reassembly_failed": None,
        "buffers": None,
        "buffers_free": None,
    }


def test_roll_up_changes_no_result(isp: Isp) -> None:
    samples = [
        (at, at + 10, (of_interface("bb0", rx_packets=100, tx_errors=at % 7),),
         of_router(fragments_sent=at, buffers=16384, buffers_free=16000 - at))
        for at in range(5, 3005, 10)
    ]  # fmt: skip
    store(isp, *samples[:200])
    steps = (10, 300, 900, 3600)
    before = {step: losses(isp, until=START + timedelta(hours=1), step_s=step) for step in steps}
    assert losses_roll_up(now=START + timedelta(days=2)) > 0
    assert stale() == 0
    after = {step: losses(isp, until=START + timedelta(hours=1), step_s=step) for step in steps}
    assert after == before
    # Late samples are visible immediately, and rolled up again.
    store(isp, *samples[200:])
    late = losses(isp, until=START + timedelta(hours=1), step_s=3600)
    assert late["interfaces"][0]["totals"]["rx_packets"] == 30_000
    assert late["router"]["totals"]["buffers_free"] == 16000 - 2995
    losses_roll_up(now=START + timedelta(days=2))
    assert losses(isp, until=START + timedelta(hours=1), step_s=3600) == late


def test_unfinished_bucket_is_not_rolled_up(isp: Isp) -> None:
    store(isp, (0, 10, (of_interface("bb0", rx_miss=1),), None), now=START + timedelta(seconds=11))
    assert losses_roll_up(now=START + timedelta(seconds=60)) == 0
    assert stale() == 1


def test_each_side_of_a_link_is_counted_by_its_router(isp: Isp) -> None:
    link = BackboneLink.objects.filter(a_router=isp.routers["rhino"]).first()
    assert link is not None
    other = next(name for name, each in isp.routers.items() if each.pk == link.z_router_id)
    store(
        isp, (0, 10, (of_interface(link.a_interface, tx_errors=4), of_interface("elsewhere0", drops=9)), None)
    )
    store(isp, (0, 10, (of_interface(link.z_interface, rx_miss=7),), None), name=other)
    answer = link_losses(link=link, since=START, until=START + timedelta(minutes=5), now=DONE)
    assert (answer["a_side"]["totals"]["tx_errors"], answer["a_side"]["totals"]["drops"]) == (4, 0)
    assert answer["z_side"]["totals"]["rx_miss"] == 7
    assert {each["name"]: each["link"] for each in losses(isp)["interfaces"]} == {
        link.a_interface: link.pk,
        "elsewhere0": None,
    }


def test_samples_with_a_wrong_time_report_no_loss(isp: Isp) -> None:
    # More than a day, which is longer than any sample may be.
    store(isp, (0, 100_000, (of_interface("bb0", rx_miss=1),), None), now=START + timedelta(days=1.2))
    assert losses(isp)["interfaces"] == []


def test_names_that_no_link_can_have_are_omitted(isp: Isp) -> None:
    store(
        isp,
        (0, 10, (of_interface("bb 0"), of_interface(""), of_interface("x" * 64), of_interface("bb0")), None),
    )
    assert [each["name"] for each in losses(isp)["interfaces"]] == ["bb0"]


def test_drops_of_ends_are_rolled_up_with_their_traffic(isp: Isp, alice: User) -> None:
    vll = order(isp, alice).vll
    policer = PolicerCount(0, 60, 0, 0, 0, 30)
    count = EndCount(str(vll.pk), "a", 900, 90, 800, 80, policer, in_drops=31, out_drops=None)
    store(isp, (0, 10, (), None), (10, 20, (), None), ends=(count,))
    stored = Sample.objects.filter(vll_id=vll.pk).values_list("in_drops", "out_drops")
    assert set(stored) == {(31, None)}
    columns = ("a_in_drops", "a_out_drops", "z_in_drops", "simulated")
    until = START + timedelta(minutes=5)
    starts = starts_of(START, until, 300)
    before = rolled_up(vll, starts, FIVE_MINUTES, columns)
    roll_up(now=DONE)
    assert before == rolled_up(vll, starts, FIVE_MINUTES, columns)
    assert before[int(START.timestamp())] == (62, None, None, False)


def test_backbone_interfaces_with_high_loss_are_found(isp: Isp) -> None:
    link = BackboneLink.objects.filter(a_router=isp.routers["rhino"]).first()
    assert link is not None
    name, now = link.a_interface, START + timedelta(seconds=40)

    def found() -> list[tuple[str, int]]:
        return [(each.interface, each.lost) for each in losing(recent_losses(now))]

    busy = of_interface(name, rx_packets=1_000_000, tx_packets=1_000_000, drops=5000)
    store(isp, (0, 10, (busy, of_interface("cust0", rx_miss=9000)), None), now=now)
    assert found() == []
    store(isp, (10, 20, (of_interface(name, rx_miss=90, tx_packets=9_000_000),), None), now=now)
    assert found() == []
    store(isp, (20, 30, (of_interface(name, rx_no_buffer=20),), None), now=now)
    assert found() == [(name, 110)]
    assert [each.reasons for each in losing(recent_losses(now))] == [{"rx_miss": 90, "rx_no_buffer": 20}]
    assert losing(recent_losses(now + timedelta(minutes=11))) == []


def test_few_lost_frames_among_few_are_not_reported(isp: Isp) -> None:
    link = BackboneLink.objects.filter(a_router=isp.routers["rhino"]).first()
    assert link is not None
    now = START + timedelta(seconds=40)
    store(isp, (0, 10, (of_interface(link.a_interface, rx_packets=10, rx_errors=2),), None), now=now)
    assert losing(recent_losses(now)) == []


def test_lowest_number_of_free_buffers_counts(isp: Isp) -> None:
    now = START + timedelta(seconds=40)
    store(isp, (0, 10, (), of_router(buffers=16384, buffers_free=1700)), now=now)
    assert short_of_buffers(recent_buffers(now)) == []
    store(isp, (10, 20, (), of_router(buffers=16384, buffers_free=100)), now=now)
    store(isp, (20, 30, (), of_router(buffers=16384, buffers_free=16000)), now=now)
    assert [(each.router, each.free) for each in short_of_buffers(recent_buffers(now))] == [("rhino", 100)]


def test_old_losses_are_deleted(isp: Isp) -> None:
    store(isp, (0, 10, (of_interface("bb0", rx_miss=1),), None))
    losses_roll_up(now=START + timedelta(days=3))
    partitions_keep(now=START + timedelta(days=4))
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM telemetry_loss_sample")
        assert cursor.fetchone()[0] == 0
    assert losses(isp, step_s=300, now=START + timedelta(days=4))["interfaces"][0]["totals"]["rx_miss"] == 1
