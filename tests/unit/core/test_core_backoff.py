from datetime import timedelta

import pytest

from portal.core.background_work import backoff

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def waits(first: timedelta, longest: timedelta) -> list[timedelta]:
    return [backoff(failures, first=first, longest=longest) for failures in (*range(8), 500, 10**9)]


@pytest.mark.parametrize(
    ("first_s", "longest_s", "expected_s"),
    [
        pytest.param(1, 60, [1, 2, 4, 8, 16, 32, 60, 60, 60, 60], id="a router"),
        pytest.param(15, 900, [15, 30, 60, 120, 240, 480, 900, 900, 900, 900], id="netbox"),
        pytest.param(5, 300, [5, 10, 20, 40, 80, 160, 300, 300, 300, 300], id="a webhook's address"),
        pytest.param(1, 64, [1, 2, 4, 8, 16, 32, 64, 64, 64, 64], id="the longest is a doubling"),
    ],
)
def test_the_pause_doubles_up_to_the_longest(first_s: int, longest_s: int, expected_s: list[int]) -> None:
    found = waits(timedelta(seconds=first_s), timedelta(seconds=longest_s))
    assert [wait.total_seconds() for wait in found] == expected_s


def test_the_longest_pause_is_reached_for_any_pair_of_limits() -> None:
    first, longest = timedelta(milliseconds=1), timedelta(days=1)
    found = [backoff(failures, first=first, longest=longest) for failures in range(40)]
    assert found == [min(first * 2**failures, longest) for failures in range(40)]


def test_the_pause_never_exceeds_the_longest() -> None:
    assert set(waits(MINUTE, MINUTE)) == {MINUTE}
    assert set(waits(MINUTE, SECOND)) == {SECOND}
