"""Policers' counts: stored once, rolled up like all counts, and a gap where nothing can be trusted."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from msgspec.structs import astuple

from portal.accounts.models import User
from portal.telemetry.counter_ingest import Stored, counters_store
from portal.telemetry.errors import RangeEmpty
from portal.telemetry.line_losses import policed
from portal.telemetry.models import Sample
from portal.telemetry.reported_counters import CounterReport, CounterSample, EndCount, PolicerCount
from portal.telemetry.rollups import roll_up
from portal.vll.models import Vll
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.telemetry.test_counter_ingest import BOOT
from tests.integration.telemetry.test_rollups import DONE, START
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
UNTIL = START + timedelta(hours=3)
COUNTED = PolicerCount(1000, 10, 200, 2, 600, 6)


@pytest.fixture
def vll(isp: Isp, alice: User) -> Vll:
    return order(isp, alice).vll


def count(isp: Isp, vll: Vll, *seconds: int, policer: PolicerCount | None = COUNTED, **more: Any) -> Stored:
    """Samples of the A end of 10 s each, beginning so many seconds after START, all with the same counts."""
    start_ms = int(START.timestamp() * 1000)
    samples = tuple(
        CounterSample(
            second,
            start_ms + second * 1000,
            start_ms + (second + 10) * 1000,
            (EndCount(str(vll.pk), "a", 1800, 18, 5, 1, policer),),
        )
        for second in seconds
    )
    now = more.get("now", DONE)
    report = CounterReport(
        str(BOOT), int(now.timestamp() * 1000), more.get("simulated", False), dropped=0, samples=samples
    )
    return counters_store(router=isp.routers["rhino"], report=report, now=now)


def read(vll: Vll, **changes: Any) -> dict[str, Any]:
    return policed(vll=vll, **{"since": START, "until": UNTIL, "now": DONE, **changes})


def colours(*numbers: int) -> dict[str, Any]:
    return {
        colour: {"bytes": numbers[at], "packets": numbers[at + 1]}
        for colour, at in (("conform", 0), ("exceed", 2), ("violate", 4))
    }


NOTHING = {"counted_s": 0, "conform": None, "exceed": None, "violate": None, "violate_ratio": None}


def test_what_was_counted_adds_up_and_the_other_end_has_nothing(isp: Isp, vll: Vll) -> None:
    count(isp, vll, 0, 10, 310)
    answer = read(vll)
    assert answer["a_end"] == {
        "counted_s": 30,
        **colours(3000, 30, 600, 6, 1800, 18),
        "violate_ratio": 18 / 54,
    }
    assert (answer["z_end"], answer["simulated"]) == (NOTHING, False)


def test_rolled_up_or_not_early_or_late_the_answer_is_the_same(isp: Isp, vll: Vll) -> None:
    count(isp, vll, *range(0, 7200, 10))
    fresh = read(vll)
    assert fresh["a_end"]["violate"] == {"bytes": 432_000, "packets": 4320}
    roll_up(now=DONE)
    assert read(vll) == fresh
    count(isp, vll, 7200)
    late = read(vll)
    assert late["a_end"]["counted_s"] == 7210
    roll_up(now=DONE)
    assert read(vll) == late
    for since, step_s in ((DONE - timedelta(days=60), 3600), (DONE - timedelta(days=800), 86400)):
        coarse = read(vll, since=since, until=DONE)
        assert coarse == late | {"step_s": step_s}


def test_a_sample_without_a_policer_is_a_gap_and_no_zero(isp: Isp, vll: Vll) -> None:
    count(isp, vll, 0, policer=None)
    assert read(vll)["a_end"] == NOTHING
    count(isp, vll, 10)
    assert read(vll)["a_end"]["counted_s"] == 10
    roll_up(now=DONE)
    assert read(vll)["a_end"] == {"counted_s": 10, **colours(*astuple(COUNTED)), "violate_ratio": 1 / 3}


def test_a_policer_that_saw_no_frame_has_zeros_and_no_ratio(isp: Isp, vll: Vll) -> None:
    count(isp, vll, 0, policer=PolicerCount(0, 0, 0, 0, 0, 0))
    assert read(vll)["a_end"] == {"counted_s": 10, **colours(0, 0, 0, 0, 0, 0), "violate_ratio": None}


def test_counts_that_come_twice_count_once(isp: Isp, vll: Vll) -> None:
    assert count(isp, vll, 0).accepted == 1
    assert count(isp, vll, 0).duplicate == 1
    assert read(vll)["a_end"]["violate"]["packets"] == 6


def test_a_policer_that_counted_backwards_is_refused(isp: Isp, vll: Vll) -> None:
    stored = count(isp, vll, 0, policer=PolicerCount(1000, 10, 0, 0, -1, 0))
    assert (stored.accepted, stored.refused) == (0, 1)
    assert not Sample.objects.exists()


@pytest.mark.parametrize("wrong", [-1, None])
def test_the_database_refuses_half_a_policer_and_less_than_nothing(
    isp: Isp, vll: Vll, wrong: int | None
) -> None:
    count(isp, vll, 0)
    with pytest.raises(IntegrityError), transaction.atomic():
        Sample.objects.update(violate_bytes=wrong)
    assert Sample.objects.get().violate_bytes == 600


def test_simulated_counts_say_so(isp: Isp, vll: Vll) -> None:
    count(isp, vll, 0, simulated=True)
    assert read(vll)["simulated"] is True


def test_a_range_that_ends_before_it_begins_is_refused(vll: Vll) -> None:
    with pytest.raises(RangeEmpty):
        read(vll, until=START)


def test_the_api_has_it_for_its_owner_alone(isp: Isp, alice: User, charlie: User, vll: Vll) -> None:
    count(isp, vll, 0)
    path = f"/api/v1/vlls/{vll.pk}/policing?from={START:%Y-%m-%dT%H:%M:%SZ}&to={UNTIL:%Y-%m-%dT%H:%M:%SZ}"
    answer = client(alice).get(path)
    assert answer.status_code == 200
    assert answer.json() == read(vll) | {"step_s": answer.json()["step_s"]}
    assert client(charlie).get(path).status_code == 404


def test_the_page_shows_the_last_day_as_a_table(
    isp: Isp, alice: User, vll: Vll, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Bandwidth enforcement last 24 hours" not in text(signed_in(alice).get(f"/vlls/{vll.pk}/"))
    count(isp, vll, 0)
    monkeypatch.setattr("portal.web.lines.line_page.clock.now", lambda: START + timedelta(hours=1))
    page = text(signed_in(alice).get(f"/vlls/{vll.pk}/"))
    shown = page[page.index("Bandwidth enforcement last 24 hours") :]
    assert "A end conform 10 1 000 A end exceed 2 200 A end violate 6 600 Z end nothing was counted" in shown
