"""The open pages of one live process: what each follows, and what it has not been told yet.

All in memory, and all of one event loop. A page that reads slowly costs a set of topics and nothing more: it
is told once of what changed however often meanwhile.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator
from time import monotonic

from portal.live.topics import Followed
from portal.metrics import live_stream_counts as metrics

# For so long it is known what changed, in seconds; a page that is older is told to look at everything.
REMEMBERED_S = 120.0


class Full(Exception):
    """There are as many streams as there may be, in all or of this person."""


class Stream:
    """One page: ``wake`` is set when it has something to be told, or is to end."""

    __slots__ = ("_topics", "_waiting", "ended", "followed", "user_id", "wake")

    def __init__(self, user_id: int, followed: Followed) -> None:
        self.user_id = user_id
        self.followed = followed
        self.ended = False
        self.wake = asyncio.Event()
        self._waiting: set[str] = set()
        self._topics: dict[str, list[str]] = {}
        for topic, keys in followed.items():
            for key in keys:
                self._topics.setdefault(key, []).append(topic)

    @property
    def keys(self) -> Iterable[str]:
        return self._topics.keys()

    def changed(self, key: str) -> None:
        self._waiting.update(self._topics[key])
        self.wake.set()

    def end(self) -> None:
        self.ended = True
        self.wake.set()

    def take(self) -> list[str]:
        """The topics that it has not been told of; from now on it has."""
        taken = sorted(self._waiting)
        self._waiting.clear()
        self.wake.clear()
        return taken


class Streams:
    """All of them, by the keys that they follow."""

    def __init__(self, *, most: int, most_each: int) -> None:
        self._most = most
        self._most_each = most_each
        self._by_key: defaultdict[str, set[Stream]] = defaultdict(set)
        self._of_user: defaultdict[int, int] = defaultdict(int)
        self._all: set[Stream] = set()
        # When each key changed last, oldest first; what changed before `_known_since` is not known.
        self._changed_at: dict[str, float] = {}
        self._known_since = monotonic()

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Stream]:
        """As they are now: they may open and close meanwhile."""
        return iter(list(self._all))

    def open(self, user_id: int, followed: Followed, *, age_s: float) -> Stream:
        """A stream for a page that shows what was so ``age_s`` ago, with what it has missed. Raises Full."""
        if len(self._all) >= self._most or self._of_user[user_id] >= self._most_each:
            raise Full
        stream = Stream(user_id, followed)
        self._all.add(stream)
        self._of_user[user_id] += 1
        shown_at = monotonic() - age_s
        for key in stream.keys:
            self._by_key[key].add(stream)
            if shown_at < self._known_since or self._changed_at.get(key, 0.0) > shown_at:
                stream.changed(key)
        metrics.open_streams.set(len(self._all))
        return stream

    def close(self, stream: Stream) -> None:
        self._all.discard(stream)
        for key in stream.keys:
            self._by_key[key].discard(stream)
            if not self._by_key[key]:
                del self._by_key[key]
        self._of_user[stream.user_id] -= 1
        if not self._of_user[stream.user_id]:
            del self._of_user[stream.user_id]
        metrics.open_streams.set(len(self._all))

    def changed(self, keys: Iterable[str]) -> None:
        """A change with these keys was committed."""
        now = monotonic()
        for key in keys:
            # Taken out first, so that the order is that of the last changes.
            self._changed_at.pop(key, None)
            self._changed_at[key] = now
            for stream in self._by_key.get(key, ()):
                stream.changed(key)
        self._forget(now - REMEMBERED_S)

    def end_all(self) -> None:
        """Changes may have been missed: pages poll, and look at everything when they come again."""
        for stream in self._all:
            stream.end()
        self._changed_at.clear()
        self._known_since = monotonic()

    def _forget(self, before: float) -> None:
        while self._changed_at:
            key, at = next(iter(self._changed_at.items()))
            if at >= before:
                break
            del self._changed_at[key]
        self._known_since = max(self._known_since, before)
