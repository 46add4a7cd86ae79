"""Queries about imports: refused rows, and tables to fill in or to correct."""

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
    """Return the imports that this user may see, newest first; the NOC sees all imports.

    An import of a kind that only a newer release knows is left out, because its columns are unknown here.
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
    """Yield the header and an example row, which imports skip."""
    yield list(kind.column_names)
    examples = [column.example for column in kind.columns]
    first = next(n for n, example in enumerate(examples) if example)
    examples[first] = f"{REMARK}{examples[first]}"
    yield list(examples)


def error_rows(this: Import) -> Iterator[list[object]]:
    """Yield the refused rows as they were sent, each with its line number and errors, for correction.

    Rows that are sent again unchanged are refused again. Cells without a column are therefore at the end,
    where they again have no column.
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
    """Return the sentence, after the name of its column if there is one."""
    column = refusal["column"]
    return f"{column}: {sentence(refusal)}" if column else sentence(refusal)
