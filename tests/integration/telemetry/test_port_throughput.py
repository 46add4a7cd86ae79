"""A port carries what its lines carry there together."""

from datetime import timedelta

import pytest

from portal.accounts.models import User
from portal.core import clock
from portal.telemetry.buckets import Unit
from portal.telemetry.counter_ingest import counters_store
from portal.telemetry.reported_counters import CounterReport, CounterSample, EndCount
from portal.telemetry.rollups import roll_up
from portal.telemetry.throughput import port_throughput
from portal.vll.models import Vll
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import Isp
from tests.integration.orders import end, order
from tests.integration.telemetry.test_counter_ingest import BOOT
from tests.integration.telemetry.test_rollups import DONE, START

pytestmark = pytest.mark.django_db
FIVE_MIN_MS = 300_000
SPAN = {"since": START, "until": START + timedelta(minutes=15)}


@pytest.fixture
def lines(isp: Isp, alice: User) -> list[Vll]:
    """Two from the same port; the second begins there with its Z end."""
    hither = {"a_end": end(isp, "hippo:host-cust1", outer=7), "z_end": end(isp, "rhino:host-cust1", outer=7)}
    return [order(isp, alice, cir_bps=10**6).vll, order(isp, alice, cir_bps=10**6, **hither).vll]


def carried(isp: Isp, vll: Vll, side: str, into: int, *, router: str = "rhino") -> None:
    """So many bytes came in at that end, in the first 5 minutes."""
    start_ms = int(START.timestamp() * 1000)
    ends = (EndCount(str(vll.pk), side, into, 3, 5, 7),)
    sample = CounterSample(start_ms // 1000, start_ms, start_ms + FIVE_MIN_MS, ends)
    report = CounterReport(str(BOOT), int(DONE.timestamp() * 1000), False, 0, (sample,))
    counters_store(router=isp.routers[router], report=report, now=DONE)


def test_the_lines_of_a_port_add_up_each_with_its_end_there(isp: Isp, lines: list[Vll]) -> None:
    carried(isp, lines[0], "a", 3_000_000)
    carried(isp, lines[1], "z", 600_000)
    # At the other port: none of this one's.
    carried(isp, lines[0], "z", 9_000_000, router="hippo")
    roll_up(now=DONE)
    answer = port_throughput(port=isp.ports["rhino:host-cust1"], now=DONE, **SPAN)
    start = int(START.timestamp())
    assert answer["port"][0][:2] == [start, (3_000_000 + 600_000) * 8 // 300]
    assert answer["port"][1:] == [[start + 300, None, None], [start + 600, None, None]]
    assert (answer["lines"], answer["missing"], answer["step_s"]) == (2, 2, 300)
    packets = port_throughput(port=isp.ports["rhino:host-cust1"], now=DONE, unit=Unit.PACKETS, **SPAN)
    assert packets["unit"] == "packet/s"


def test_a_line_that_has_ended_is_no_more_in_the_sum(isp: Isp, lines: list[Vll]) -> None:
    for vll, side in zip(lines, "az", strict=True):
        carried(isp, vll, side, 300_000)
    roll_up(now=DONE)
    Vll.objects.filter(pk=lines[1].pk).update(lifecycle="terminated")
    answer = port_throughput(port=isp.ports["rhino:host-cust1"], now=DONE, **SPAN)
    assert (answer["port"][0][1], answer["lines"]) == (8000, 1)


def test_a_port_without_lines_has_gaps_and_no_zeros(isp: Isp) -> None:
    answer = port_throughput(port=isp.ports["rhino:host-cust2"], now=DONE, **SPAN)
    assert [row[1:] for row in answer["port"]] == [[None, None]] * 3


def test_what_is_not_over_is_not_summed_yet(isp: Isp, lines: list[Vll]) -> None:
    now = START + timedelta(minutes=11)
    answer = port_throughput(port=isp.ports["rhino:host-cust1"], now=now, since=START, until=now)
    assert [row[0] for row in answer["port"]] == [int(START.timestamp())]


def test_a_longer_time_is_drawn_in_longer_steps(isp: Isp, lines: list[Vll]) -> None:
    steps = {
        days: port_throughput(
            port=isp.ports["rhino:host-cust1"], since=DONE - timedelta(days=days), until=DONE, now=DONE
        )["step_s"]
        for days in (1, 30, 365)
    }
    assert steps == {1: 300, 30: 3600, 365: 86400}


def test_api_shows_the_sum_and_refuses_invalid_ranges(isp: Isp, alice: User, lines: list[Vll]) -> None:
    api, address = client(alice), f"/api/v1/ports/{isp.ports['rhino:host-cust1'].pk}/throughput"
    assert api.get(address).json()["lines"] == 2
    now = int(clock.now().timestamp())
    assert api.get(address, {"from": now, "to": now - 1}).status_code == 422
