"""The changes that an import from NetBox makes: compare both inventories, and write the differences.

Each field has three values: the value in NetBox, the value in the portal, and the last imported value. If the
portal still has the imported value, NetBox's value replaces it. If the portal has another value, a user has
edited the field. The portal then keeps its value and reports the difference. Changes are written with the
inventory's operations, with their rules, events and audit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction

from portal.accounts.models import Customer, User
from portal.core.errors import DomainError
from portal.core.reader_texts import in_english
from portal.inventory.models import BackboneLink, Port, Router, Site
from portal.inventory.operations import WRITES
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
from portal.netbox_sync.models import NetboxObject

# Fields that refer to another row, and the kind of that row. The value of such a field is the id of the other
# row's NetBox object.
REFERENCES = {"site": SITE, "customer": CUSTOMER, "a_router": ROUTER, "z_router": ROUTER}
# Required fields. A row without them is not created.
_NEEDED = {PORT: ("speed_bps", "max_frame")}
# The code of a finding about a row whose object no longer exists in NetBox.
GONE = "gone"
_SIDES = ("router", "interface", "ip_mtu")
# The fields of each kind that an import writes.
_FIELDS = {
    SITE: ("name",),
    CUSTOMER: ("name",),
    ROUTER: ("site", "loopback4", "loopback6"),
    PORT: ("kind", "description", "customer", "speed_bps", "max_frame"),
    LINK: tuple(f"{side}_{name}" for side in "az" for name in _SIDES),
}


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
    """Return the changes that make the inventories equal. Manual edits are kept, and become findings."""
    found = Difference(findings=list(wish.findings), names=_names(wish, local))
    for kind in KINDS:
        rows = local.get(kind, [])
        there = {want.id for want in wish.rows[kind]}
        by_id = {row.id: row for row in rows if row.id in there}
        # The other rows were created in the portal, or their objects were re-created in NetBox with other
        # ids.
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
    """Return the place, (router, interface) or an ordered pair of these, with ``after`` for ``before``."""
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
    """Return whether NetBox's value replaces ours: an imported value that nobody changed, or an empty one."""
    if name in row.taken:
        return bool(ours == row.taken[name])
    return ours in (None, "") and theirs not in (None, "")


def _turned(want: Wanted, row: LocalRow) -> dict[str, Any]:
    """Return the fields of a link with its sides as in the portal's row, which decides which side is A."""
    theirs = want.fields
    turned = {f"{a}_{name}": theirs[f"{z}_{name}"] for a, z in (("a", "z"), ("z", "a")) for name in _SIDES}

    def alike(fields: Mapping[str, Any]) -> int:
        ends = ("a_router", "a_interface", "z_router", "z_interface")
        return sum(row.fields.get(name) == fields[name] for name in ends)

    return turned if alike(turned) > alike(theirs) else theirs


_AT_ONCE = 1000
MODELS: dict[str, Any] = {SITE: Site, CUSTOMER: Customer, ROUTER: Router, PORT: Port, LINK: BackboneLink}


def local_inventory() -> dict[str, list[LocalRow]]:
    """Return all rows of the portal's inventory, by kind."""
    known: dict[str, dict[int, NetboxObject]] = {kind: {} for kind in MODELS}
    for each in NetboxObject.objects.all().iterator(_AT_ONCE):
        known[each.kind][each.row_id] = each

    def named(kind: str, row_id: int | None) -> int | str | None:
        if row_id is None:
            return None
        as_object = known[kind].get(row_id)
        return as_object.netbox_id if as_object else f"row {row_id}"

    def value(row: Any, name: str) -> Any:
        kind = REFERENCES.get(name)
        return getattr(row, name) if kind is None else named(kind, getattr(row, f"{name}_id"))

    def local_row(kind: str, row: Any) -> LocalRow:
        as_object = known[kind].get(row.pk)
        fields = {name: value(row, name) for name in _FIELDS[kind]}
        if kind == PORT:
            place: tuple[Any, ...] = (named(ROUTER, row.router_id), row.interface)
        elif kind == LINK:
            place = sides_place(*((fields[f"{side}_router"], fields[f"{side}_interface"]) for side in "az"))
        else:
            place = (row.name,)
        return LocalRow(
            kind=kind,
            row=row.pk,
            name=str(row),
            place=place,
            fields=fields,
            id=as_object.netbox_id if as_object else None,
            taken=as_object.taken if as_object else {},
            retired=getattr(row, "retired_at", None) is not None,
        )

    related = {PORT: ("router",), LINK: ("a_router", "z_router")}
    rows = {
        kind: model.objects.select_related(*related.get(kind, ())).order_by("pk")
        for kind, model in MODELS.items()
    }
    return {kind: [local_row(kind, row) for row in rows[kind].iterator(_AT_ONCE)] for kind in rows}


# The name of the user in events of scheduled syncs. There is no such account.
ACTOR = "NetBox"


class Missing(Exception):
    """The row refers to another row that does not exist, because it could not be created."""


class Applier:
    """Makes changes, each in its own transaction, so that the next sync makes only the rest."""

    def __init__(self, *, actor: str, now: datetime) -> None:
        self._user = User(username=actor or ACTOR)
        self._now = now
        self._rows = {
            (each.kind, each.netbox_id): each.row_id
            for each in NetboxObject.objects.only("kind", "netbox_id", "row_id").iterator(1000)
        }

    def apply(self, change: Change) -> Finding | None:
        """Make a change. Return None if the change was made, otherwise a finding with the reason."""
        try:
            with transaction.atomic():
                row_id = self._write(change)
                self._remember(change, row_id)
        except DomainError as error:
            with in_english():
                why = error.sentence
            return Finding("refused_here", change.name, {"what": change.kind, "why": why})
        except Missing as error:
            return Finding("depends", change.name, {"what": change.kind, "on": str(error)})
        self._rows[change.kind, change.id] = row_id
        return None

    def _write(self, change: Change) -> int:
        values = {name: self._ours(name, after) for name, (_, after) in change.fields.items()}
        common = {"user": self._user, "now": self._now}
        if change.row is None:
            made = WRITES[change.kind].create(**self._place(change), **values, **common)
            return int(made.pk)
        if values:
            row = MODELS[change.kind].objects.get(pk=change.row)
            WRITES[change.kind].change(**{change.kind: row}, **values, **common)
        return change.row

    def _place(self, change: Change) -> dict[str, Any]:
        """Return attributes of a new row that never change later, and are not in ``change.fields``."""
        if change.kind == ROUTER:
            return {"name": change.place[0]}
        if change.kind == PORT:
            return {"router": self._ours("a_router", change.place[0]), "interface": change.place[1]}
        return {}

    def _ours(self, name: str, value: Any) -> Any:
        kind = REFERENCES.get(name)
        if kind is None or value is None:
            return value
        row = MODELS[kind].objects.filter(pk=self._rows.get((kind, value))).first()
        if row is None:
            raise Missing(f"{kind} {value}")
        return row

    def _remember(self, change: Change, row_id: int) -> None:
        # The row may have belonged to another NetBox object. This NetBox object may have had another row,
        # which no longer exists.
        NetboxObject.objects.filter(kind=change.kind, row_id=row_id).exclude(netbox_id=change.id).delete()
        NetboxObject.objects.update_or_create(
            kind=change.kind, netbox_id=change.id, defaults={"row_id": row_id, "taken": change.take}
        )
