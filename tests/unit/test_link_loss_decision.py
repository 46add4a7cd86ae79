"""Link loss forwarding by its table: which end is kept down, and that it never swings by itself."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.vll.link_loss_decision import (
    CALM,
    FORGOTTEN,
    LONGEST_UP,
    EndLink,
    Timing,
    held_next,
    other,
    times_next,
)

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


def turn(held: str, a: EndLink, z: EndLink, *, set_up_at: datetime | None = None) -> str:
    return held_next(held, {"a": a, "z": z}, times=1, set_up_at=set_up_at, timing=TIMING, now=NOW)


@pytest.mark.parametrize(("a", "z"), list(product(ALL, ALL)))
def test_every_state_turns_as_the_table_says(a: EndLink, z: EndLink) -> None:
    ends = {"a": a, "z": z}
    begun = [side for side in "az" if ends[side] in HAS_A_LINK and ends[other(side)] in LOST]
    assert len(begun) < 2
    assert turn("", a, z) == "".join(begun)
    for held in "az":
        far = ends[other(held)]
        assert turn(held, a, z) == ("" if far in ENDS_IT else held)


@pytest.mark.parametrize("since", [LONG_AGO, NOW - timedelta(seconds=59), None])
def test_a_port_that_was_shut_until_its_end_was_verified_has_a_minute_for_its_link(
    since: datetime | None,
) -> None:
    for seconds, held in ((59, ""), (60, "z")):
        verified = NOW - timedelta(seconds=seconds)
        assert turn("", EndLink(False, since, verified_at=verified), UP) == held
    lost_again = EndLink(False, NOW - timedelta(seconds=10), verified_at=NOW - timedelta(seconds=11))
    assert turn("", lost_again, UP) == "z"


def seen(held: str, truth: dict[str, bool], since: datetime) -> dict[str, EndLink]:
    """What is known where these links are really up: nothing of the one that is kept down."""
    return {side: EndLink(None if side == held else truth[side], since) for side in "az"}


@pytest.mark.parametrize("held", ["", "a", "z"])
@pytest.mark.parametrize(("a", "z"), list(product((True, False), repeat=2)))
def test_links_that_stay_as_they_are_lead_to_rest_within_two_turns(held: str, a: bool, z: bool) -> None:
    truth, turns = {"a": a, "z": z}, [held]
    for _ in range(4):
        ends = seen(turns[-1], truth, LONG_AGO)
        turns.append(turn(turns[-1], **ends))
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


def seconds_ago(seconds: int) -> datetime:
    return NOW - timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("set_up", "lost", "held"),
    [
        (60, 59, ""),
        (61, 60, "a"),
        (60, 60, "a"),
        (50, 59, ""),
        (50, 60, "a"),  # lost already when the port was set up
        (0, 7200, "a"),
        (100, 41, ""),
        (100, 40, ""),
        (120, 60, "a"),
        (100, 39, "a"),  # set up for more than a minute, as any link that is lost
        (7200, 10, "a"),
    ],
)
def test_a_link_that_is_lost_right_after_a_port_was_set_up_has_a_minute_to_come(
    set_up: int, lost: int, held: str
) -> None:
    ends = {"a": UP, "z": EndLink(False, seconds_ago(lost))}
    assert turn("", **ends, set_up_at=seconds_ago(set_up)) == held


def test_what_a_dead_router_loses_is_lost_at_once_and_so_is_what_was_lost_before_it_was_noted() -> None:
    assert turn("", UP, DEAD, set_up_at=NOW) == "a"
    assert turn("", UP, DOWN_BEFORE_IT_WAS_NOTED, set_up_at=NOW) == "a"


def simulated(flips: list[int], seconds: int, *, negotiation: int) -> Iterator[str]:
    """What is held each second while A's link flips at these seconds.

    ``negotiation``: so many seconds after a port is set up it has its link.
    """
    held, times, turned_at, set_up_at = "", 0, NOW - CALM * 2, None
    truth = {"a": (True, NOW), "z": (True, NOW)}
    linked_at = {"a": 0, "z": 0}
    for second in range(seconds):
        now = NOW + timedelta(seconds=second)
        if second in flips:
            truth["a"] = not truth["a"][0], now
        ends = {}
        for side, (up, since) in truth.items():
            waits = second < linked_at[side]
            changed = max(since, NOW + timedelta(seconds=linked_at[side])) if up and not waits else since
            ends[side] = EndLink(None if side == held else up and not waits, turned_at if waits else changed)
        before = held
        held = held_next(held, ends, times=times, set_up_at=set_up_at, timing=TIMING, now=now)
        if held != before:
            times = times_next(times, turned_at=turned_at, now=now) if held else times
            turned_at = now
            set_up_at = None if held else now
            linked_at |= {before: second + negotiation} if before else {}
        yield held


def turns_of(held: list[str]) -> int:
    return sum(before != after for before, after in pairwise(held))


@settings(deadline=None)
@given(st.lists(st.integers(0, 3599), max_size=400, unique=True), st.integers(0, 60))
def test_whatever_a_link_does_the_far_end_turns_seldom(flips: list[int], negotiation: int) -> None:
    held = list(simulated(flips, 3600, negotiation=negotiation))
    # Each time takes the loss's ten seconds and twice as long to be back as the last time: 10, 20 … 300 s.
    least = sum(10 + min(10 * 2**n, 300) for n in range(5))
    assert turns_of(held) <= 2 * (5 + (3600 - least) // 310 + 1)
    assert set(held) <= {"", "z"}


def test_a_link_that_flaps_faster_than_a_loss_has_to_last_is_not_forwarded_at_all() -> None:
    assert set(simulated(list(range(0, 3600, 7)), 3600, negotiation=12)) == {""}


@pytest.mark.parametrize("negotiation", [0, 8, 12, 15, 30, 60])
def test_one_loss_is_one_loss_however_long_the_other_port_takes_to_have_its_link_again(
    negotiation: int,
) -> None:
    held = list(simulated([100, 140], 3600, negotiation=negotiation))
    assert (turns_of(held), held[-1]) == (2, "")
    assert held.count("z") == 40
    assert "a" not in held


def test_a_link_that_flaps_is_waited_for_longer_each_time_and_no_longer_after_a_calm_hour() -> None:
    waits = [TIMING.up_after(times).total_seconds() for times in range(8)]
    assert waits == [10, 10, 20, 40, 80, 160, 300, 300]
    assert TIMING.up_after(10**6) == LONGEST_UP
    assert Timing(down=TIMING.down, up=timedelta(minutes=9)).up_after(3) == timedelta(minutes=9)
    assert (TIMING.longest_up, Timing(TIMING.down, timedelta(minutes=9)).longest_up) == (
        LONGEST_UP,
        timedelta(minutes=9),
    )
    assert times_next(4, turned_at=NOW - CALM, now=NOW) == 5
    assert times_next(4, turned_at=NOW - CALM - timedelta(seconds=1), now=NOW) == 1
