"""Wanted against what is here -> changes. Pure: three sides of every field, so that no hand's work is lost.

The third side is what was taken over last. Where ours is still that, NetBox's new value comes; where ours is
something else, somebody has edited it here: it is kept, and said so.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from portal.netbox_sync.import_mapping import (
    CUSTOMER,
    KINDS,
    LINK,
    PORT,
    ROUTER,
    SITE,
    Finding,
    Wanted,
    Wish,
    sides_place,
)

# Fields that name a row of another kind, by the id of its NetBox object.
REFERENCES = {"site": SITE, "customer": CUSTOMER, "a_router": ROUTER, "z_router": ROUTER}
# A row without these cannot be made.
_NEEDED = {PORT: ("speed_bps", "max_frame")}
# The code of a row here whose object NetBox no longer shows.
GONE = "gone"
_SIDES = ("router", "interface", "ip_mtu")


@dataclass(slots=True)
class Held:
    """A row here, told in NetBox's terms: references are NetBox ids, or ``row <n>`` where it knows none.

    ``id``: the NetBox object that it is, None when it was made here; ``taken``: what was taken over last.
    """

    kind: str
    row: int
    name: str
    place: tuple[Any, ...]
    fields: dict[str, Any]
    id: int | None = None
    taken: dict[str, Any] = field(default_factory=dict)
    retired: bool = False


@dataclass(slots=True)
class Change:
    """One row to make (``row`` None) or to change. ``fields``: name -> (before, after), in NetBox's terms.

    ``take``: what counts as taken over once it is done; without ``fields`` it only is noted.
    """

    kind: str
    id: int
    name: str
    place: tuple[Any, ...]
    row: int | None
    fields: dict[str, tuple[Any, Any]]
    take: dict[str, Any]

    @property
    def creates(self) -> bool:
        return self.row is None

    @property
    def writes(self) -> bool:
        return self.creates or bool(self.fields)


@dataclass(slots=True)
class Difference:
    """``changes`` in an order in which they can be made."""

    changes: list[Change] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    # What is named by an id, or by ``row <n>``: (kind, that) -> its name.
    names: dict[tuple[str, Any], str] = field(default_factory=dict)

    def shown(self, name: str, value: Any) -> Any:
        """A field's value as people read it."""
        kind = REFERENCES.get(name)
        return value if kind is None or value is None else self.names.get((kind, value), str(value))

    @property
    def written(self) -> list[Change]:
        """Without those that only are noted."""
        return [change for change in self.changes if change.writes]

    def told(self, change: Change) -> dict[str, Any]:
        """``kind``, ``name``, ``creates``, and ``fields``: name -> [before, after], as people read them."""
        fields = {
            name: [self.shown(name, before), self.shown(name, after)]
            for name, (before, after) in change.fields.items()
        }
        return {"kind": change.kind, "name": change.name, "creates": change.creates, "fields": fields}


def differences(wish: Wish, held: Mapping[str, list[Held]]) -> Difference:
    """The changes that make all here as NetBox has it, but for what people edited here."""
    found = Difference(findings=list(wish.findings), names=_names(wish, held))
    for kind in KINDS:
        rows = held.get(kind, [])
        there = {want.id for want in wish.rows[kind]}
        by_id = {row.id: row for row in rows if row.id in there}
        # Made here by hand, or made anew there under another id.
        by_place = {row.place: row for row in rows if row.id not in there}
        met = set()
        for want in wish.rows[kind]:
            row = by_id.get(want.id) or by_place.get(want.place)
            if row is None:
                _create(want, found)
                continue
            met.add(row.row)
            is_news = row.id != want.id
            if is_news:
                _adopt(row, want, held)
            _compare(want, row, is_news, found)
        for row in rows:
            if row.id is not None and row.row not in met and not row.retired:
                found.findings.append(Finding(GONE, row.name, {"what": kind}))
    return found


def _names(wish: Wish, held: Mapping[str, list[Held]]) -> dict[tuple[str, Any], str]:
    named: dict[tuple[str, Any], str] = {}
    for kind in (SITE, CUSTOMER, ROUTER):
        named |= {(kind, row.id or f"row {row.row}"): row.name for row in held.get(kind, [])}
        named |= {(kind, want.id): want.name for want in wish.rows[kind]}
    return named


def _adopt(row: Held, want: Wanted, held: Mapping[str, list[Held]]) -> None:
    """From now on the row is that object: whatever names it here, names it so."""
    ours = f"row {row.row}" if row.id is None else row.id
    row.id = want.id
    for others in held.values():
        for other in others:
            for name, kind in REFERENCES.items():
                if kind == row.kind and other.fields.get(name) == ours:
                    other.fields[name] = want.id
            if row.kind == ROUTER:
                other.place = _renamed(other.place, ours, want.id)


def _renamed(place: tuple[Any, ...], before: str | int, after: int) -> tuple[Any, ...]:
    """A port's place is (router, interface), a link's is two of these, in order."""
    if place and isinstance(place[0], tuple):
        return sides_place(*(_renamed(side, before, after) for side in place))
    return tuple(after if part == before else part for part in place)


def _create(want: Wanted, found: Difference) -> None:
    if want.lacks or any(want.fields.get(name) is None for name in _NEEDED.get(want.kind, ())):
        return
    fields = {name: (None, value) for name, value in want.fields.items()}
    found.changes.append(Change(want.kind, want.id, want.name, want.place, None, fields, dict(want.fields)))


def _compare(want: Wanted, row: Held, is_news: bool, found: Difference) -> None:
    if row.retired:
        found.findings.append(Finding("retired_here", row.name, {"what": row.kind}))
        return
    theirs = _turned(want, row) if row.kind == LINK else want.fields
    if row.kind in (ROUTER, PORT) and row.place != want.place:
        found.findings.append(Finding("renamed", row.name, {"what": row.kind, "name": want.name}))
    changes, take = {}, dict(row.taken)
    for name, value in theirs.items():
        ours = row.fields.get(name)
        if ours == value:
            take[name] = value
        elif _follows(name, ours, value, row):
            changes[name], take[name] = (ours, value), value
        elif not (name not in row.taken and value in (None, "")):
            facts = {"field": name, "ours": found.shown(name, ours), "theirs": found.shown(name, value)}
            found.findings.append(Finding("kept", row.name, facts))
    if changes or is_news or take != row.taken:
        found.changes.append(Change(want.kind, want.id, want.name, want.place, row.row, changes, take))


def _follows(name: str, ours: Any, theirs: Any, row: Held) -> bool:
    """Whether NetBox's value may come: nobody has edited ours since the last time, or ours says nothing."""
    if name in row.taken:
        return bool(ours == row.taken[name])
    return ours in (None, "") and theirs not in (None, "")


def _turned(want: Wanted, row: Held) -> dict[str, Any]:
    """The link's sides as the row has them: which is A and which is Z is ours to say."""
    theirs = want.fields
    turned = {f"{a}_{name}": theirs[f"{z}_{name}"] for a, z in (("a", "z"), ("z", "a")) for name in _SIDES}

    def alike(fields: Mapping[str, Any]) -> int:
        ends = ("a_router", "a_interface", "z_router", "z_interface")
        return sum(row.fields.get(name) == fields[name] for name in ends)

    return turned if alike(turned) > alike(theirs) else theirs
