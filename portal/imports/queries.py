"""Reading imports: what is wrong with their rows, and tables to fill in or to mend."""

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
    """Return the imports that this user may see, newest first: the NOC sees all of them.

    An import of a kind that only a newer release knows has no columns here, and is left out.
    """
    if not user.is_noc:
        return Import.objects.none()
    found = Import.objects.filter(kind__in=KINDS).select_related("asked_by", "begun_by", "ended_by")
    return found.order_by("-created_at", "-id")


def kinds_for(user: User) -> list[Kind]:
    """The kinds that this user may import."""
    return [kind for kind in KINDS.values() if kind.may_import(Actor(user=user))]


def refused_rows(this: Import) -> QuerySet[ImportRow]:
    """In the order of the file."""
    return this.rows.filter(state=ImportRow.State.REFUSED).order_by("line")


def template_rows(kind: Kind) -> Iterator[list[object]]:
    """The header, and an example that is passed over when it is left in."""
    yield list(kind.column_names)
    examples = [column.example for column in kind.columns]
    first = next(n for n, example in enumerate(examples) if example)
    examples[first] = f"{REMARK}{examples[first]}"
    yield list(examples)


def error_rows(this: Import) -> Iterator[list[object]]:
    """The refused rows as they were sent, each with its line and what is wrong: to be mended, sent again.

    What is sent again as it is, is refused again: cells without a column come last, where they have none
    again.
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
    """Return the sentence, after the name of its column if it has one."""
    column = refusal["column"]
    return f"{column}: {sentence(refusal)}" if column else sentence(refusal)
