"""A list as it came in JSON, which is decoded only where somebody looks into it."""

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar, overload

from portal.core.json_digest import json_digest

Item = TypeVar("Item")


class NotTold(LookupError):
    """A list was only named by its digest, and its items are wanted."""


class LazyList(Sequence[Item], Generic[Item]):
    """``raw`` items, ``decode`` makes one of ours of each; ``decoded``: where that is done already."""

    def __init__(
        self, raw: Sequence[Any], decode: Callable[[Any], Item], decoded: tuple[Item, ...] | None = None
    ) -> None:
        self._told: Sequence[Any] | None = raw
        self._decode, self._ready = decode, decoded

    @classmethod
    def named(cls, digest: str) -> "LazyList[Item]":
        """A list of which only the digest was told: whoever looks into it gets a ``NotTold``."""
        named = cls((), lambda raw: raw)
        named._told, named.digest = None, digest
        return named

    @cached_property
    def digest(self) -> str:
        return json_digest(self._raw)

    @property
    def _raw(self) -> Sequence[Any]:
        if self._told is None:
            raise NotTold(self.digest)
        return self._told

    @cached_property
    def _decoded(self) -> tuple[Item, ...]:
        return tuple(map(self._decode, self._raw)) if self._ready is None else self._ready

    def where(self, member: str, values: Collection[str]) -> list[Item]:
        """The items of which a member is one of these values; no other is decoded."""
        return [self._decode(item) for item in self._raw if item[member] in values]

    def __len__(self) -> int:
        return len(self._raw)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | Sequence[Item]:
        return self._decoded[index]
