"""Events of open pages, and the memory of recent changes."""

from uuid import UUID, uuid4

import pytest

from portal.live.topics import keys_of
from portal.processes import live_streams
from portal.processes.live_streams import Full, Streams

LINES = {"lines": frozenset({"lines:7"})}
LINE = UUID(int=7)


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        (f"line:{LINE}:7", {f"line:{LINE}", "lines:7", "lines"}),
        ("ports:7", {"ports:7", "ports"}),
        ("ports:", {"ports:", "ports"}),
        ("network", {"network"}),
        ("something of a later release", set()),
    ],
)
def test_a_change_has_the_keys_of_all_affected_pages(change: str, keys: set[str]) -> None:
    assert keys_of(change) == keys


def test_a_slow_page_gets_one_event_for_repeated_changes() -> None:
    streams = Streams(most=10, most_each=10)
    page = streams.open(1, LINES, age_s=0)
    for _ in range(1000):
        streams.changed(keys_of(f"line:{LINE}:7"))
    assert page.wake.is_set()
    assert page.take() == ["lines"]
    assert not page.wake.is_set()
    assert page.take() == []


def test_a_key_of_two_topics_makes_two_events() -> None:
    streams = Streams(most=10, most_each=10)
    page = streams.open(
        1, {"lines": frozenset({"lines"}), f"line:{LINE}": frozenset({f"line:{LINE}"})}, age_s=0
    )
    streams.changed(keys_of(f"line:{LINE}:7"))
    assert page.take() == sorted(["lines", f"line:{LINE}"])


def test_streams_are_limited_in_total_and_per_person() -> None:
    streams = Streams(most=3, most_each=2)
    first, _ = streams.open(1, LINES, age_s=0), streams.open(1, LINES, age_s=0)
    with pytest.raises(Full):
        streams.open(1, LINES, age_s=0)
    streams.open(2, LINES, age_s=0)
    with pytest.raises(Full):
        streams.open(3, LINES, age_s=0)
    streams.close(first)
    streams.open(1, LINES, age_s=0)
    assert len(streams) == 3


def test_keys_without_followers_are_discarded() -> None:
    streams = Streams(most=10, most_each=10)
    for _ in range(100):
        streams.close(streams.open(1, {f"line:{uuid4()}": frozenset({f"line:{uuid4()}"})}, age_s=0))
    assert len(streams) == 0
    assert not streams._by_key
    assert not streams._of_user


def test_a_page_gets_the_changes_since_it_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(live_streams, "monotonic", lambda: now)
    streams = Streams(most=10, most_each=10)
    now += 50
    streams.changed({"lines:7"})
    now += 5
    assert streams.open(1, LINES, age_s=4).take() == []
    assert streams.open(1, LINES, age_s=6).take() == ["lines"]
    # The page also has to reload if its earlier state is unknown.
    assert streams.open(1, {"ports": frozenset({"ports:7"})}, age_s=54).take() == []
    assert streams.open(1, {"ports": frozenset({"ports:7"})}, age_s=56).take() == ["ports"]
    now += live_streams.REMEMBERED_S
    streams.changed({"network"})
    assert list(streams._changed_at) == ["network"]
    assert streams.open(1, LINES, age_s=live_streams.REMEMBERED_S + 1).take() == ["lines"]


def test_after_a_gap_in_notifications_every_page_reloads_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(live_streams, "monotonic", lambda: now)
    streams = Streams(most=10, most_each=10)
    page = streams.open(1, LINES, age_s=0)
    now += 50
    streams.end_all()
    assert page.ended
    assert page.wake.is_set()
    now += 5
    assert streams.open(1, LINES, age_s=4).take() == []
    assert streams.open(1, LINES, age_s=6).take() == ["lines"]
