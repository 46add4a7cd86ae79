"""Queries about imports: refused rows, templates to fill in, and tables of errors to correct."""

from collections.abc import Iterator

from django.db.models import QuerySet

from portal.accounts.models import User
from portal.imports.kinds import KINDS
from portal.imports.kinds.kind import ERROR_COLUMNS, Actor, Kind
from portal.imports.models import Import, ImportRow
from portal.imports.refusals import sentence
from portal.imports.staging import REMARK
from portal.uploads.errors import TableFormula
from portal.uploads.table import refused_again


def imports(user: User) -> QuerySet[Import]:
    """Return the imports that this user may see, newest first. NOC staff see all imports.

    If only a newer release knows the kind of an import, the import is left out: this release does not know
    its columns.
    """
    if not user.is_noc:
        return Import.objects.none()
    found = Import.objects.filter(kind__in=KINDS).select_related("requested_by", "begun_by", "ended_by")
    return found.order_by("-created_at", "-id")


def kinds_for(user: User) -> list[Kind]:
    """Return the kinds that this user may import."""
    return [kind for kind in KINDS.values() if kind.may_import(Actor(user=user))]


def refused_rows(this: Import) -> QuerySet[ImportRow]:
    """Return the refused rows in the order of the file."""
    return this.rows.filter(state=ImportRow.State.REFUSED).order_by("line")


def template_rows(kind: Kind) -> Iterator[list[object]]:
    """Yield the header of a template, and an example row. Imports skip the example row."""
    yield list(kind.column_names)
    examples = [column.example for column in kind.columns]
    first = next(n for n, example in enumerate(examples) if example)
    examples[first] = f"{REMARK}{examples[first]}"
    yield list(examples)


def error_rows(this: Import) -> Iterator[list[object]]:
    """Yield the refused rows as they were sent, each with its line number and errors, so that users can
    correct them.

    If a row is sent again unchanged, it must be refused again. Cells that had no column are therefore put at
    the end, where they have no column again.
    """
    kind = KINDS[this.kind]
    yield [*kind.column_names, *ERROR_COLUMNS]
    for row in refused_rows(this).iterator():
        formulas = {each["facts"]["column"] for each in row.refusals if each["code"] == TableFormula.code}
        cells = {name: row.cells.get(name, "") for name in kind.column_names}
        cells |= {name: refused_again(cells[name]) for name in formulas & cells.keys()}
        errors = " ".join(_refusal_text(each) for each in row.refusals)
        yield [*cells.values(), row.line, errors, *row.surplus]


def _refusal_text(refusal: dict[str, str]) -> str:
    """Return the sentence of a refusal. It begins with the name of the column, if there is one."""
    column = refusal["column"]
    return f"{column}: {sentence(refusal)}" if column else sentence(refusal)
