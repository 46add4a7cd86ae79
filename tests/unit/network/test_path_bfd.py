"""BFD on paths: its settings, and when a path is down."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from portal.core.network.path_bfd import LISTENING, PathState, PathWatch, is_path_down


def test_one_setting_contains_interval_and_multiplier() -> None:
    assert PathWatch.read("300x3") == PathWatch(interval_ms=300, multiplier=3)
    assert PathWatch.read("50x50") == PathWatch(interval_ms=50, multiplier=50)
    assert PathWatch.read("off") is None


@pytest.mark.parametrize(
    "written",
    ["", "on", "300", "300x", "x3", "300x3 ", "300ms x 3", "49x3", "10001x3", "300x1", "300x51", "-300x3"],
)
def test_an_invalid_setting_is_refused_with_the_valid_form(written: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"LONGLINE_PATH_WATCH.*off, or milliseconds.*300x3"):
        PathWatch.read(written)


@pytest.mark.parametrize("far", sorted(LISTENING))
def test_a_path_is_down_when_one_router_misses_the_other_which_has_a_session(far: PathState) -> None:
    assert is_path_down([PathState.DOWN, far])
    assert is_path_down([far, PathState.DOWN])


@pytest.mark.parametrize("far", ["", PathState.SHUT, PathState.REFUSED])
def test_a_router_without_a_peers_session_does_not_count(far: str) -> None:
    assert not is_path_down([PathState.DOWN, far])


def test_a_path_that_was_never_up_is_not_down() -> None:
    assert not is_path_down([PathState.UNHEARD, PathState.UNHEARD])
    assert not is_path_down([PathState.STARTING, PathState.UP])
    assert not is_path_down(["", ""])
