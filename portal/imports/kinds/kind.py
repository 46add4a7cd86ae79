"""A kind of import: the columns of its tables, and the operation that makes an object from a row."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from django.utils.functional import Promise

from portal.accounts import permissions
from portal.accounts.models import ApiToken, User
from portal.allocation.vlan_ranges import Keys
from portal.core.errors import DomainError
from portal.imports.cells import Reader
from portal.imports.errors import CellMissing, NamedNowhere

Text = str | Promise
# The values of a row's non-empty cells, by column.
RowValues = Mapping[str, Any]
# Columns of error tables, which users correct and upload again.
ERROR_COLUMNS = ("import_line", "import_errors")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column. ``example``: a cell for templates. ``unit``: the unit of a number, "" for none."""

    name: str
    read: Reader
    meaning: Text
    example: str
    unit: Text = ""
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """The user who imports, with the API token of the upload."""

    user: User
    token: ApiToken | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A unique value that a row claims: ``value`` in ``column``, as the column's reader returns it.

    Columns of one ``group`` claim the same things: both ends of a link, for example, claim interfaces. "" is
    the column's own group. With ``keys``, the row claims these frames of the port that is the group. Another
    row may claim other frames of it, but none of the same.
    """

    column: str
    value: str
    group: str = ""
    keys: Keys | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.group or self.column, self.value


class Batch(ABC):
    """Some rows of a kind, with all objects that they name read and locked together.

    A batch is opened inside the transaction that imports its rows.
    """

    @abstractmethod
    def find(self, values: RowValues) -> Mapping[str, Any] | None:
        """Return the existing object of this row, by column; None if there is none."""

    @abstractmethod
    def make(self, values: RowValues, *, actor: Actor, now: datetime) -> None:
        """Create the object with the operation that pages and the API use. Raises DomainError."""


class Kind(ABC):
    """A kind. ``slug``: its name in addresses. ``passed_over``: columns of the portal's exports that are
    ignored.
    """

    slug: ClassVar[str]
    title: ClassVar[Text]
    about: ClassVar[Text]
    columns: ClassVar[tuple[Column, ...]]
    passed_over: ClassVar[tuple[str, ...]] = ()
    # Rows per transaction. Other transactions wait for the locks of these rows.
    batch: ClassVar[int] = 200

    def may_import(self, actor: Actor) -> bool:
        """Return whether the user may import, by the rule of the page that creates one such object."""
        return permissions.may_run_the_network(actor.user)

    def name(self, values: RowValues) -> str:
        """Return the row's name for its reader. By default its column ``name``."""
        return str(values["name"])

    def claims(self, values: RowValues) -> Iterator[Claim]:
        """Yield the values that no other row of the file may have. By default its name."""
        yield Claim("name", values["name"])

    @abstractmethod
    def open(self, rows: Sequence[RowValues]) -> Batch:
        """Open the batch of these rows."""

    @property
    def column_names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def required(self) -> list[str]:
        return [column.name for column in self.columns if column.required]

    def read(self, cells: Mapping[str, str]) -> tuple[dict[str, Any], list[DomainError]]:
        """Return the values of a row's cells, and the errors in some of them."""
        values: dict[str, Any] = {}
        refusals: list[DomainError] = []
        for column in self.columns:
            cell = cells.get(column.name, "")
            if not cell:
                if column.required:
                    refusals.append(CellMissing(column=column.name, field=column.name))
                continue
            try:
                value = column.read(cell, column.name)
            except DomainError as refusal:
                refusals.append(refusal)
            else:
                if value is not None:
                    values[column.name] = value
        return values, refusals


def named(found: Mapping[str, Any], values: RowValues, column: str, what: str) -> Any:
    """Return the row that a cell names; None for an empty cell. Raises NamedNowhere."""
    name = values.get(column)
    if name is None:
        return None
    if name not in found:
        raise NamedNowhere(what=what, name=name, field=column)
    return found[name]


def names(rows: Sequence[RowValues], *columns: str) -> set[Any]:
    """Return all values of these columns."""
    return {row[column] for row in rows for column in columns if column in row}
