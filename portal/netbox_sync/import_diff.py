"""Pure functions that compare NetBox's inventory with the portal's inventory, without losing manual edits.

Each field has three values: the value in NetBox, the value in the portal, and the last imported value. If the
portal still has the imported value, NetBox's value replaces it. If the portal has another value, a user has
edited the field. The portal then keeps its value and reports the difference.
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

# Fields that refer to another row, and the kind of that row. The value of such a field is the id of the other
# row's NetBox object.
REFERENCES = {"site": SITE, "customer": CUSTOMER, "a_router": ROUTER, "z_router": ROUTER}
# Required fields. A row without them is not created.
_NEEDED = {PORT: ("speed_bps", "max_frame")}
# The code of a finding about a row whose object no longer exists in NetBox.
GONE = "gone"
_SIDES = ("router", "interface", "ip_mtu")


@dataclass(slots=True)
class LocalRow:
    """A row of the portal, in a form that can be compared with NetBox's objects.

    A reference to another row is the id of that row's NetBox object, or ``row <n>`` if it has none. ``id``:
    the id of the NetBox object; None if a user created the row in the portal. ``taken``: the last imported
    values.
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
    """A row to create (``row`` is None) or to change.

    ``fields``: for each changed field, the values (before, after), with references as in LocalRow. ``take``:
    the values to record as last imported. If ``fields`` is empty, the change only records ``take``.
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
    """The result of the comparison. Each change comes after the changes that it depends on."""

    changes: list[Change] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    # The names of rows by (kind, id or ``row <n>``).
    names: dict[tuple[str, Any], str] = field(default_factory=dict)

    def shown(self, name: str, value: Any) -> Any:
        """Return the value of the field ``name`` for people: for a reference, the name of the other row."""
        kind = REFERENCES.get(name)
        return value if kind is None or value is None else self.names.get((kind, value), str(value))

    @property
    def written(self) -> list[Change]:
        """The changes that create a row or change its fields."""
        return [change for change in self.changes if change.writes]

    def record(self, change: Change) -> dict[str, Any]:
        """Return a change as JSON: ``kind``, ``name``, ``creates`` and ``fields``.

        ``fields`` has [before, after] by name, as ``shown`` returns them.
        """
        fields = {
            name: [self.shown(name, before), self.shown(name, after)]
            for name, (before, after) in change.fields.items()
        }
        return {"kind": change.kind, "name": change.name, "creates": change.creates, "fields": fields}


def differences(wish: Wish, local: Mapping[str, list[LocalRow]]) -> Difference:
    """Return the changes that make the portal's inventory equal to NetBox's inventory.

    Manual edits are kept, and reported as findings.
    """
    found = Difference(findings=list(wish.findings), names=_names(wish, local))
    for kind in KINDS:
        rows = local.get(kind, [])
        there = {want.id for want in wish.rows[kind]}
        by_id = {row.id: row for row in rows if row.id in there}
        # The remaining rows: a user created the row in the portal, or its object was re-created in NetBox
        # with another id.
        by_place = {row.place: row for row in rows if row.id not in there}
        met = set()
        for want in wish.rows[kind]:
            row = by_id.get(want.id) or by_place.get(want.place)
            if row is None:
                _create(want, found)
                continue
            met.add(row.row)
            is_new = row.id != want.id
            if is_new:
                _adopt(row, want, local)
            _compare(want, row, is_new, found)
        for row in rows:
            if row.id is not None and row.row not in met and not row.retired:
                found.findings.append(Finding(GONE, row.name, {"what": kind}))
    return found


def _names(wish: Wish, local: Mapping[str, list[LocalRow]]) -> dict[tuple[str, Any], str]:
    named: dict[tuple[str, Any], str] = {}
    for kind in (SITE, CUSTOMER, ROUTER):
        named |= {(kind, row.id or f"row {row.row}"): row.name for row in local.get(kind, [])}
        named |= {(kind, want.id): want.name for want in wish.rows[kind]}
    return named


def _adopt(row: LocalRow, want: Wanted, local: Mapping[str, list[LocalRow]]) -> None:
    """Connect the row with the object ``want``, and change other rows' references to the row."""
    ours = f"row {row.row}" if row.id is None else row.id
    row.id = want.id
    for others in local.values():
        for other in others:
            for name, kind in REFERENCES.items():
                if kind == row.kind and other.fields.get(name) == ours:
                    other.fields[name] = want.id
            if row.kind == ROUTER:
                other.place = _renamed(other.place, ours, want.id)


def _renamed(place: tuple[Any, ...], before: str | int, after: int) -> tuple[Any, ...]:
    """Return the place with the id ``after`` instead of ``before``.

    The place of a port is (router, interface). The place of a link is an ordered pair of such tuples.
    """
    if place and isinstance(place[0], tuple):
        return sides_place(*(_renamed(side, before, after) for side in place))
    return tuple(after if part == before else part for part in place)


def _create(want: Wanted, found: Difference) -> None:
    if want.lacks or any(want.fields.get(name) is None for name in _NEEDED.get(want.kind, ())):
        return
    fields = {name: (None, value) for name, value in want.fields.items()}
    found.changes.append(Change(want.kind, want.id, want.name, want.place, None, fields, dict(want.fields)))


def _compare(want: Wanted, row: LocalRow, is_new: bool, found: Difference) -> None:
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
    if changes or is_new or take != row.taken:
        found.changes.append(Change(want.kind, want.id, want.name, want.place, row.row, changes, take))


def _follows(name: str, ours: Any, theirs: Any, row: LocalRow) -> bool:
    """Return whether NetBox's value of the field ``name`` replaces the portal's value.

    * If the field was imported before: True if the portal's value has not changed since then.
    * If the field was never imported: True if the portal's value is empty and NetBox's value is not.
    """
    if name in row.taken:
        return bool(ours == row.taken[name])
    return ours in (None, "") and theirs not in (None, "")


def _turned(want: Wanted, row: LocalRow) -> dict[str, Any]:
    """Return the fields of a link, with its sides in the order of the portal's row.

    The portal decides which side is A and which side is Z.
    """
    theirs = want.fields
    turned = {f"{a}_{name}": theirs[f"{z}_{name}"] for a, z in (("a", "z"), ("z", "a")) for name in _SIDES}

    def alike(fields: Mapping[str, Any]) -> int:
        ends = ("a_router", "a_interface", "z_router", "z_interface")
        return sum(row.fields.get(name) == fields[name] for name in ends)

    return turned if alike(turned) > alike(theirs) else theirs
