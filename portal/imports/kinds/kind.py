"""A kind of import: the columns of its tables, and the operation that creates an object from a row."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from django.utils.functional import Promise

from portal.accounts import permissions
from portal.accounts.models import ApiToken, User
from portal.allocation.vlan_leases import Keys
from portal.core.errors import DomainError
from portal.imports.cells import Reader
from portal.imports.errors import CellMissing, NamedNowhere

Text = str | Promise
# The values of a row's non-empty cells, keyed by column.
RowValues = Mapping[str, Any]
# Extra columns of error tables. Users correct error tables and upload them again.
ERROR_COLUMNS = ("import_line", "import_errors")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column. ``example`` is a cell for templates. ``unit`` is the unit of a number, or ""."""

    name: str
    read: Reader
    meaning: Text
    example: str
    unit: Text = ""
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """The user for whom rows are imported, with the API token of the request, if any."""

    user: User
    token: ApiToken | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A value that must be unique in the file: ``value`` in ``column``, as the column's reader returns it.

    Columns with the same ``group`` share their values: for example, both ends of links claim interfaces. With
    ``group=""``, the values are only compared within the column.

    With ``keys``, the row claims only a range of frames of the port named by ``group``. Other rows may claim
    other frames of the same port.
    """

    column: str
    value: str
    group: str = ""
    keys: Keys | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.group or self.column, self.value


class Batch(ABC):
    """Some rows of a kind. All objects that the rows name are read and locked together.

    A batch is created inside the transaction that imports its rows.
    """

    @abstractmethod
    def find(self, values: RowValues) -> Mapping[str, Any] | None:
        """Return the existing object of a row, keyed by column, or None if the object does not exist."""

    @abstractmethod
    def make(self, values: RowValues, *, actor: Actor, now: datetime) -> None:
        """Create the object with the same operation as pages and the API. Raises DomainError."""


class Kind(ABC):
    """A kind of import. ``slug`` is its name in addresses. ``passed_over``: columns of the portal's exports
    that the import ignores.
    """

    slug: str
    title: Text
    about: Text
    columns: tuple[Column, ...]
    passed_over: ClassVar[tuple[str, ...]] = ()
    # Rows per transaction. While a transaction runs, other transactions wait for the locks of its rows.
    batch: ClassVar[int] = 200

    def may_import(self, actor: Actor) -> bool:
        """Return whether the actor may import this kind, by the rule of the page that creates one object."""
        return permissions.may_run_the_network(actor.user)

    def name(self, values: RowValues) -> str:
        """Return the name of the row for readers. By default this is the value of the column ``name``."""
        return str(values["name"])

    def claims(self, values: RowValues) -> Iterator[Claim]:
        """Yield the values of the row that no other row of the file may have. By default this is the value of
        the column ``name``.
        """
        yield Claim("name", values["name"])

    @abstractmethod
    def open(self, rows: Sequence[RowValues]) -> Batch:
        """Return a batch of these rows."""

    @property
    def column_names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def required(self) -> list[str]:
        return [column.name for column in self.columns if column.required]

    def read(self, cells: Mapping[str, str]) -> tuple[dict[str, Any], list[DomainError]]:
        """Return the values of a row's cells, and the errors of the cells that could not be read."""
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
    """Return the object in ``found`` that the cell names; None for an empty cell. Raises NamedNowhere."""
    name = values.get(column)
    if name is None:
        return None
    if name not in found:
        raise NamedNowhere(what=what, name=name, field=column)
    return found[name]


def names(rows: Sequence[RowValues], *columns: str) -> set[Any]:
    """Return all values that the rows have in these columns."""
    return {row[column] for row in rows for column in columns if column in row}
