"""Link loss forwarding by its table: which end is shut down, without oscillation."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.vll.operations.link_loss_forwarding import (
    CALM,
    FORGOTTEN,
    LONGEST_UP,
    EndLink,
    Timing,
    other,
    shut_side_next,
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
CANNOT = EndLink(True, LONG_AGO, may_be_shut=False)
UP_SINCE_UNKNOWN, DOWN_SINCE_UNKNOWN = EndLink(True, None), EndLink(False, None)
ALL = (
    UP_SINCE_UNKNOWN,
    DOWN_SINCE_UNKNOWN,
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
# States that take the far end down if possible, with the reason; and states that set an end up again.
LOST = (DOWN, DOWN_SINCE_UNKNOWN, DEAD, DEAD_AND_DOWN)
CAN_BE_DOWN, ENDS_IT = (
    (UP, UP_SINCE_UNKNOWN, JUST_UP),
    (UP, UP_SINCE_UNKNOWN, CANNOT, FORGOTTEN_END),
)


def turn(shut: str, a: EndLink, z: EndLink, *, set_up_at: datetime | None = None) -> str:
    return shut_side_next(shut, {"a": a, "z": z}, times=1, set_up_at=set_up_at, timing=TIMING, now=NOW)


@pytest.mark.parametrize(("a", "z"), list(product(ALL, ALL)))
def test_every_state_changes_as_in_the_table(a: EndLink, z: EndLink) -> None:
    ends = {"a": a, "z": z}
    begun = [side for side in "az" if ends[side] in CAN_BE_DOWN and ends[other(side)] in LOST]
    assert len(begun) < 2
    assert turn("", a, z) == "".join(begun)
    for shut in "az":
        far = ends[other(shut)]
        assert turn(shut, a, z) == ("" if far in ENDS_IT else shut)


@pytest.mark.parametrize("since", [LONG_AGO, NOW - timedelta(seconds=59), None])
def test_a_port_that_was_shut_until_its_end_was_verified_has_a_minute_for_its_link(
    since: datetime | None,
) -> None:
    for seconds, shut in ((59, ""), (60, "z")):
        verified = NOW - timedelta(seconds=seconds)
        assert turn("", EndLink(False, since, verified_at=verified), UP) == shut
    lost_again = EndLink(False, NOW - timedelta(seconds=10), verified_at=NOW - timedelta(seconds=11))
    assert turn("", lost_again, UP) == "z"


def observed(shut: str, truth: dict[str, bool], since: datetime) -> dict[str, EndLink]:
    """Return the observed links for these true states: the link of the end that is shut down is unknown."""
    return {side: EndLink(None if side == shut else truth[side], since) for side in "az"}


@pytest.mark.parametrize("shut", ["", "a", "z"])
@pytest.mark.parametrize(("a", "z"), list(product((True, False), repeat=2)))
def test_stable_links_lead_to_a_stable_decision_within_two_turns(shut: str, a: bool, z: bool) -> None:
    truth, turns = {"a": a, "z": z}, [shut]
    for _ in range(4):
        ends = observed(turns[-1], truth, LONG_AGO)
        turns.append(turn(turns[-1], **ends))
    assert len(set(turns[2:])) == 1
    # In a stable state a port is down only for a lost link, and no port is down if both links are up.
    assert not turns[-1] or not truth[other(turns[-1])]


def test_after_both_links_are_lost_the_first_to_return_is_taken_down() -> None:
    assert turn("", DOWN, DOWN) == ""
    assert turn("", UP, DOWN) == "a"
    # Z lost its own link while it was shut down, and nobody could observe it. Z's loss shows once A is back.
    assert turn("z", UP, UNKNOWN) == ""
    assert turn("", UP, JUST_DOWN) == ""
    assert turn("", UP, DOWN) == "a"


def seconds_ago(seconds: int) -> datetime:
    return NOW - timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("set_up", "lost", "shut"),
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
        (100, 39, "a"),  # set up for more than a minute: handled like any lost link
        (7200, 10, "a"),
    ],
)
def test_a_link_that_is_lost_right_after_a_port_was_set_up_has_a_minute_to_come(
    set_up: int, lost: int, shut: str
) -> None:
    ends = {"a": UP, "z": EndLink(False, seconds_ago(lost))}
    assert turn("", **ends, set_up_at=seconds_ago(set_up)) == shut


def test_losses_of_a_dead_router_and_earlier_losses_count_immediately() -> None:
    assert turn("", UP, DEAD, set_up_at=NOW) == "a"
    assert turn("", UP, DOWN_SINCE_UNKNOWN, set_up_at=NOW) == "a"


def simulated(flips: list[int], seconds: int, *, negotiation: int) -> Iterator[str]:
    """Yield the end that is shut down in each second, while A's link changes at these seconds.

    ``negotiation``: the seconds from the set-up of a port until its link is up.
    """
    shut, times, turned_at, set_up_at = "", 0, NOW - CALM * 2, None
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
            ends[side] = EndLink(None if side == shut else up and not waits, turned_at if waits else changed)
        before = shut
        shut = shut_side_next(shut, ends, times=times, set_up_at=set_up_at, timing=TIMING, now=now)
        if shut != before:
            times = times_next(times, turned_at=turned_at, now=now) if shut else times
            turned_at = now
            set_up_at = None if shut else now
            linked_at |= {before: second + negotiation} if before else {}
        yield shut


def turns_of(shut: list[str]) -> int:
    return sum(before != after for before, after in pairwise(shut))


@settings(deadline=None)
@given(st.lists(st.integers(0, 3599), max_size=400, unique=True), st.integers(0, 60))
def test_a_flapping_link_rarely_changes_the_far_end(flips: list[int], negotiation: int) -> None:
    shut = list(simulated(flips, 3600, negotiation=negotiation))
    # Each turn takes the ten seconds of the loss, and twice the previous wait: 10, 20 … 300 s.
    least = sum(10 + min(10 * 2**n, 300) for n in range(5))
    assert turns_of(shut) <= 2 * (5 + (3600 - least) // 310 + 1)
    assert set(shut) <= {"", "z"}


def test_a_link_that_flaps_faster_than_the_loss_delay_is_not_forwarded() -> None:
    assert set(simulated(list(range(0, 3600, 7)), 3600, negotiation=12)) == {""}


@pytest.mark.parametrize("negotiation", [0, 8, 12, 15, 30, 60])
def test_a_slow_negotiation_of_the_other_port_adds_no_second_loss(
    negotiation: int,
) -> None:
    shut = list(simulated([100, 140], 3600, negotiation=negotiation))
    assert (turns_of(shut), shut[-1]) == (2, "")
    assert shut.count("z") == 40
    assert "a" not in shut


def test_the_wait_for_a_flapping_link_grows_until_a_calm_hour() -> None:
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
