"""Link loss forwarding by its table: which end is kept down, and that it never swings by itself."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.vll.link_loss import CALM, FORGOTTEN, LONGEST_UP, EndLink, Timing, held_next, other, times_next

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
TIMING = Timing(down=timedelta(seconds=10), up=timedelta(seconds=10))
LONG_AGO = NOW - timedelta(hours=2)

UP, DOWN, UNKNOWN = EndLink(True, LONG_AGO), EndLink(False, LONG_AGO), EndLink(None, None)
JUST_UP, JUST_DOWN = (EndLink(up, NOW - timedelta(seconds=9)) for up in (True, False))
DEAD = EndLink(None, None, router_dead=True, silent_since=LONG_AGO)
DEAD_AND_DOWN = EndLink(False, LONG_AGO, router_dead=True)
SILENT = EndLink(None, None, silent_since=NOW - FORGOTTEN)
FORGOTTEN_END = EndLink(None, None, silent_since=NOW - FORGOTTEN - timedelta(seconds=1))
CANNOT = EndLink(True, LONG_AGO, may_be_held=False)
UP_BEFORE_IT_WAS_NOTED, DOWN_BEFORE_IT_WAS_NOTED = EndLink(True, None), EndLink(False, None)
ALL = (
    UP_BEFORE_IT_WAS_NOTED,
    DOWN_BEFORE_IT_WAS_NOTED,
    UP,
    DOWN,
    UNKNOWN,
    JUST_UP,
    JUST_DOWN,
    DEAD,
    DEAD_AND_DOWN,
    SILENT,
    FORGOTTEN_END,
    CANNOT,
)
# Whose far end is taken down if it can be, and which one that is; and what sets an end up again.
LOST = (DOWN, DOWN_BEFORE_IT_WAS_NOTED, DEAD, DEAD_AND_DOWN)
HAS_A_LINK, ENDS_IT = (
    (UP, UP_BEFORE_IT_WAS_NOTED, JUST_UP),
    (UP, UP_BEFORE_IT_WAS_NOTED, CANNOT, FORGOTTEN_END),
)


def turn(held: str, a: EndLink, z: EndLink, *, times: int = 1, now: datetime = NOW) -> str:
    return held_next(held, {"a": a, "z": z}, times=times, timing=TIMING, now=now)


@pytest.mark.parametrize(("a", "z"), list(product(ALL, ALL)))
def test_every_state_turns_as_the_table_says(a: EndLink, z: EndLink) -> None:
    ends = {"a": a, "z": z}
    begun = [side for side in "az" if ends[side] in HAS_A_LINK and ends[other(side)] in LOST]
    assert len(begun) < 2
    assert turn("", a, z) == "".join(begun)
    for held in "az":
        far = ends[other(held)]
        assert turn(held, a, z) == ("" if far in ENDS_IT else held)


def seen(held: str, truth: dict[str, bool], since: datetime) -> dict[str, EndLink]:
    """What is known where these links are really up: nothing of the one that is kept down."""
    return {side: EndLink(None if side == held else truth[side], since) for side in "az"}


@pytest.mark.parametrize("held", ["", "a", "z"])
@pytest.mark.parametrize(("a", "z"), list(product((True, False), repeat=2)))
def test_links_that_stay_as_they_are_lead_to_rest_within_two_turns(held: str, a: bool, z: bool) -> None:
    truth, turns = {"a": a, "z": z}, [held]
    for _ in range(4):
        ends = seen(turns[-1], truth, LONG_AGO)
        turns.append(held_next(turns[-1], ends, times=1, timing=TIMING, now=NOW))
    assert len(set(turns[2:])) == 1
    # At rest a port is down only for a link that is really lost, and none where both are up.
    assert not turns[-1] or not truth[other(turns[-1])]


def test_both_lost_and_then_one_back_takes_down_the_one_that_is_back_for_the_other() -> None:
    assert turn("", DOWN, DOWN) == ""
    assert turn("", UP, DOWN) == "a"
    # Z was kept down while it lost its own link, which nobody could see. Once A is back, that is.
    assert turn("z", UP, UNKNOWN) == ""
    assert turn("", UP, JUST_DOWN) == ""
    assert turn("", UP, DOWN) == "a"


def simulated(flips: list[int], seconds: int) -> Iterator[str]:
    """What is held each second while A's link flips at these seconds."""
    held, times, turned_at = "", 0, NOW - CALM * 2
    up, since, released = True, NOW, NOW
    for second in range(seconds):
        now = NOW + timedelta(seconds=second)
        if second in flips:
            up, since = not up, now
        z = EndLink(None if held == "z" else True, released)
        before, held = (
            held,
            held_next(held, {"a": EndLink(up, since), "z": z}, times=times, timing=TIMING, now=now),
        )
        if held != before:
            times = times_next(times, turned_at=turned_at, now=now) if held else times
            turned_at = released = now
        yield held


def turns_of(held: list[str]) -> int:
    return sum(before != after for before, after in pairwise(held))


@given(st.lists(st.integers(0, 3599), max_size=400, unique=True))
def test_whatever_a_link_does_the_far_end_turns_seldom(flips: list[int]) -> None:
    held = list(simulated(flips, 3600))
    # Each time takes the loss's ten seconds and twice as long to be back as the last time: 10, 20 … 300 s.
    least = sum(10 + min(10 * 2**n, 300) for n in range(5))
    assert turns_of(held) <= 2 * (5 + (3600 - least) // 310 + 1)
    assert set(held) <= {"", "z"}


def test_a_link_that_flaps_faster_than_a_loss_has_to_last_is_not_forwarded_at_all() -> None:
    assert set(simulated(list(range(0, 3600, 7)), 3600)) == {""}


def test_a_link_that_flaps_is_waited_for_longer_each_time_and_no_longer_after_a_calm_hour() -> None:
    waits = [TIMING.up_after(times).total_seconds() for times in range(8)]
    assert waits == [10, 10, 20, 40, 80, 160, 300, 300]
    assert TIMING.up_after(10**6) == LONGEST_UP
    assert Timing(down=TIMING.down, up=timedelta(minutes=9)).up_after(3) == timedelta(minutes=9)
    assert times_next(4, turned_at=NOW - CALM, now=NOW) == 5
    assert times_next(4, turned_at=NOW - CALM - timedelta(seconds=1), now=NOW) == 1
