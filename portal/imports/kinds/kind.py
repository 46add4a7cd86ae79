"""A kind of import: the columns of its tables, and how a row becomes what a page would make."""

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
# The values of a row's cells that are not empty, by column.
RowValues = Mapping[str, Any]
# Columns of the tables of errors, which are mended and sent again.
ERROR_COLUMNS = ("import_line", "import_errors")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """``example``: a cell of it, as the templates have it. ``unit``: of a number, "" for none."""

    name: str
    read: Reader
    meaning: Text
    example: str
    unit: Text = ""
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who imports, and the API token that it was sent with."""

    user: User
    token: ApiToken | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """Something of a row's ``column`` that exists once: ``value``, as its reader knows it.

    Columns of one ``group`` claim the same things, such as both ends of a link the interfaces; "": the
    column's own. With ``keys``, the row claims these frames of the port that is the group: another row may
    claim other frames of it, but none of them.
    """

    column: str
    value: str
    group: str = ""
    keys: Keys | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.group or self.column, self.value


class Batch(ABC):
    """Some rows of a kind, with all that they name looked up and locked at once.

    It is opened inside the transaction in which its rows are made.
    """

    @abstractmethod
    def find(self, values: RowValues) -> Mapping[str, Any] | None:
        """What is there already of this row, by column; None: nothing is."""

    @abstractmethod
    def make(self, values: RowValues, *, actor: Actor, now: datetime) -> None:
        """By the operation that pages and the API call. Raises DomainError."""


class Kind(ABC):
    """``slug`` is its name in addresses. ``passed_over``: columns of our exports that say nothing here."""

    slug: ClassVar[str]
    title: ClassVar[Text]
    about: ClassVar[Text]
    columns: ClassVar[tuple[Column, ...]]
    passed_over: ClassVar[tuple[str, ...]] = ()
    # Rows in a transaction: what they lock, others wait for.
    batch: ClassVar[int] = 200

    def may_import(self, actor: Actor) -> bool:
        """As the page that makes one of them."""
        return permissions.may_run_the_network(actor.user)

    def name(self, values: RowValues) -> str:
        """What the row is called, to its reader: by its name, unless the kind has none."""
        return str(values["name"])

    def claims(self, values: RowValues) -> Iterator[Claim]:
        """What no other row of the file may have: its name alone, unless the kind says otherwise."""
        yield Claim("name", values["name"])

    @abstractmethod
    def open(self, rows: Sequence[RowValues]) -> Batch:
        """The rows of a batch."""

    @property
    def column_names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def required(self) -> list[str]:
        return [column.name for column in self.columns if column.required]

    def read(self, cells: Mapping[str, str]) -> tuple[dict[str, Any], list[DomainError]]:
        """The values of a row's cells, and what is wrong with some of them."""
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
    """The row that a cell names; None where the cell says nothing. Raises NamedNowhere."""
    name = values.get(column)
    if name is None:
        return None
    if name not in found:
        raise NamedNowhere(what=what, name=name, field=column)
    return found[name]


def names(rows: Sequence[RowValues], *columns: str) -> set[Any]:
    """All that these columns say."""
    return {row[column] for row in rows for column in columns if column in row}
