"""The last hour of many lines says what each line's own graph does, in a fixed number of statements."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.accounts.models import User
from portal.telemetry.rollups import roll_up
from portal.telemetry.throughput import STEP_S, recent_of, throughput
from portal.vll.models import Vll
from tests.integration.isp import Isp
from tests.integration.orders import end, order
from tests.integration.telemetry.test_rollups import START, count

pytestmark = pytest.mark.django_db
NOW = START + timedelta(minutes=57, seconds=20)


def lines(isp: Isp, alice: User, number: int) -> list[Vll]:
    return [
        order(
            isp,
            alice,
            cir_bps=10**6,
            a_end=end(isp, "rhino:host-cust1", outer=vlan),
            z_end=end(isp, "hippo:host-cust1", outer=vlan),
        ).vll
        for vlan in range(100, 100 + number)
    ]


def counted(isp: Isp, vll: Vll, bytes_in: int, side: str = "a") -> None:
    """Every 10 s from the 10th minute to 20 s before NOW, with five minutes left out."""
    seconds = [at for at in range(600, 57 * 60, 10) if not 1800 <= at < 2100]
    count(isp, vll, *((at * 1000, at * 1000 + 10_000, bytes_in, 5) for at in seconds), side=side, now=NOW)


def test_it_is_what_the_graph_says_before_and_after_the_rollup(isp: Isp, alice: User) -> None:
    (vll,) = lines(isp, alice, 1)
    Vll.objects.filter(pk=vll.pk).update(created_at=START)
    vll.refresh_from_db()
    counted(isp, vll, 1250)
    counted(isp, vll, 250, side="z")
    first = int((NOW - timedelta(hours=1)).timestamp() // STEP_S + 1) * STEP_S
    graph = throughput(
        vll=vll, since=datetime.fromtimestamp(first, tz=UTC), until=NOW, step_s=STEP_S, now=NOW
    )
    drawn = {
        side: [None if into is None else float(into) for _at, into, _out in graph[f"{side}_end"]]
        for side in "az"
    }
    for _ in range(2):
        recent = recent_of([vll.pk], now=NOW)[vll.pk]
        assert [None if rate is None else round(rate) for rate in recent.a] == drawn["a"]
        assert [None if rate is None else round(rate) for rate in recent.z] == drawn["z"]
        assert {1000, None} <= set(drawn["a"])
        roll_up(now=NOW)


def test_a_line_that_counted_nothing_is_empty(isp: Isp, alice: User) -> None:
    (vll,) = lines(isp, alice, 1)
    assert recent_of([vll.pk], now=NOW)[vll.pk].is_empty
    assert recent_of([], now=NOW) == {}


def test_more_lines_take_no_more_statements(isp: Isp, alice: User) -> None:
    made = lines(isp, alice, 4)
    for vll in made:
        count(isp, vll, (3_300_000, 3_310_000, 1250, 5), now=NOW)

    def statements(vlls: list[Vll]) -> int:
        with CaptureQueriesContext(connection) as captured:
            recent_of([vll.pk for vll in vlls], now=NOW)
        return len(captured)

    assert statements(made[:1]) == statements(made)
