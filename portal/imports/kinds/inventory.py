"""Imports of sites, routers, backbone links, customers and ports. The columns are derived from
``portal.inventory.kinds``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Model, QuerySet

from portal.accounts.models import Customer
from portal.imports import cells
from portal.imports.kinds.kind import Actor, Batch, Claim, Column, Kind, RowValues, named, names
from portal.inventory import kinds
from portal.inventory.kinds import KIND_OF, Field, InventoryKind, Type
from portal.inventory.models import Router, Site
from portal.inventory.models.link import link_name
from portal.inventory.operations import WRITES

_READERS: dict[Type, cells.Reader] = {
    Type.INTERFACE: cells.text(),
    Type.BOOLEAN: cells.yes_or_no,
    Type.NUMBER: cells.whole,
    Type.DURATION: cells.whole,
    Type.RATE: cells.rate,
    Type.SIZE: cells.size,
    Type.DEGREES: cells.degrees,
    Type.IPV4: cells.address(4),
    Type.IPV6: cells.address(6),
    Type.HTTPS_URL: cells.https_url,
    Type.ROUTER_NAME: cells.router_name,
}
# The rows that other rows name. Routers and customers are locked, so that they are not retired meanwhile: in
# this sequence, and each in the order of their ids, like the operations for single rows (ADR 76).
_NAMED: dict[type[Model], Callable[[], QuerySet[Any]]] = {
    Site: Site.objects.all,
    Router: lambda: _locked(Router.objects.filter(retired_at__isnull=True)),
    Customer: lambda: _locked(Customer.objects.all()),
}


def _locked(rows: QuerySet[Any]) -> QuerySet[Any]:
    return rows.select_for_update(no_key=True).order_by("pk")


def _reader(of: Field) -> cells.Reader:
    match of.type:
        case Type.TEXT:
            return cells.text(of.column.max_length)
        case Type.CHOICE:
            return cells.one_of(*(value for value, _label in of.column.choices))
        case Type.ROW:
            return cells.router_name if of.column.related_model is Router else cells.text()
    return _READERS[of.type]


class InventoryImport(Kind):
    """An import of rows of the inventory."""

    def __init__(self, of: InventoryKind) -> None:
        self.of, self.create = of, WRITES[of.name].create
        self.slug, self.title, self.about = of.slug, of.title, of.about
        self.columns = tuple(
            Column(
                name=each.name,
                read=_reader(each),
                meaning=each.meaning,
                unit=each.unit,
                example=each.example,
                required=each.is_required,
            )
            for each in of.fields
        )

    def claims(self, values: RowValues) -> Iterator[Claim]:
        for column in self.of.unique:
            if column in values:
                yield Claim(column, values[column])

    def open(self, rows: Sequence[RowValues]) -> Batch:
        return InventoryBatch(self, rows)

    def key(self, values: RowValues) -> tuple[Any, ...]:
        return tuple(values[column] for column in self.of.key)


class Ports(InventoryImport):
    def name(self, values: RowValues) -> str:
        return f"{values['router']}:{values['interface']}"

    def claims(self, values: RowValues) -> Iterator[Claim]:
        yield Claim("interface", self.name(values))


class Links(InventoryImport):
    def name(self, values: RowValues) -> str:
        return link_name(*self.key(values))

    def claims(self, values: RowValues) -> Iterator[Claim]:
        for side in "az":
            yield Claim(
                f"{side}_interface", f"{values[f'{side}_router']}:{values[f'{side}_interface']}", "interface"
            )

    def open(self, rows: Sequence[RowValues]) -> Batch:
        return LinkBatch(self, rows)


class InventoryBatch(Batch):
    """Rows of one kind, with the rows that they name and the rows that exist already."""

    def __init__(self, kind: InventoryImport, rows: Sequence[RowValues]) -> None:
        self._kind = kind
        self._references = {
            each.name: each.column.related_model for each in kind.of.fields if each.type is Type.ROW
        }
        self._named: dict[type[Model], dict[str, Any]] = {}
        for model, among in _NAMED.items():
            if columns := [column for column, of in self._references.items() if of is model]:
                found = among().filter(name__in=names(rows, *columns))
                self._named[model] = {row.name: row for row in found}
        self._existing: dict[tuple[Any, ...], dict[str, Any]] = {}
        for row in self._existing_rows(rows).select_related(*self._references):
            facts = {column.name: getattr(row, column.name) for column in kind.columns}
            facts |= {column: facts[column] and facts[column].name for column in self._references}
            self._remember(facts)

    def find(self, values: RowValues) -> Mapping[str, Any] | None:
        return self._existing.get(self._kind.key(values))

    def make(self, values: RowValues, *, actor: Actor, now: datetime) -> None:
        referenced = {
            column: named(self._named[model], values, column, KIND_OF[model].name)
            for column, model in self._references.items()
        }
        self._kind.create(**{**values, **referenced}, user=actor.user, now=now)

    def _existing_rows(self, rows: Sequence[RowValues]) -> QuerySet[Any]:
        found = self._kind.of.model._default_manager.all()
        if "retired_at" in {column.name for column in found.model._meta.fields}:
            found = found.filter(retired_at__isnull=True)
        for column in self._kind.of.key:
            model = self._references.get(column)
            found = found.filter(
                **{f"{column}__in": self._named[model].values() if model else names(rows, column)}
            )
        return found

    def _remember(self, facts: dict[str, Any]) -> None:
        self._existing[self._kind.key(facts)] = facts


class LinkBatch(InventoryBatch):
    """Links. A link may be written with its sides exchanged, in the table or in the portal."""

    def _existing_rows(self, rows: Sequence[RowValues]) -> QuerySet[Any]:
        interfaces = names(rows, "a_interface", "z_interface")
        links = self._kind.of.model._default_manager
        return links.filter(a_router__in=self._named[Router].values(), a_interface__in=interfaces)

    def _remember(self, facts: dict[str, Any]) -> None:
        super()._remember(facts)
        other = {"a_": "z_", "z_": "a_"}
        super()._remember({other.get(name[:2], name[:2]) + name[2:]: value for name, value in facts.items()})


SITES, ROUTERS, CUSTOMERS = map(InventoryImport, (kinds.SITE, kinds.ROUTER, kinds.CUSTOMER))
LINKS, PORTS = Links(kinds.LINK), Ports(kinds.PORT)
