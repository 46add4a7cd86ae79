"""The tables of imports: files that are read and stored, templates to fill in, and errors to correct."""

from bisect import bisect, insort
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import PurePath

from django.db import transaction
from django.db.models import QuerySet

from portal.accounts.models import User
from portal.allocation.vlan_leases import overlap
from portal.celery_tasks import RUN_IMPORT
from portal.core.errors import DomainError
from portal.core.plain_text import made_plain
from portal.events.task_requests import send_task
from portal.imports.errors import RowTwice, TableEmpty, refusal_record, sentence
from portal.imports.kinds import KINDS
from portal.imports.kinds.kind import ERROR_COLUMNS, Actor, Claim, Kind
from portal.imports.models import Import, ImportRow, ImportState
from portal.uploads.csv_reader import TableRow, refused_again, table_rows
from portal.uploads.errors import TableFormula

MAX_ROWS = 20_000
REMARK = "# "
_AT_ONCE = 2_000


@transaction.atomic
def import_stage(
    *, kind: Kind, data: bytes, file_name: str, actor: Actor, now: datetime, at_once: bool = False
) -> Import:
    """Store the rows of a file, and queue the import. The rows will be checked, and imported after a
    confirmation.

    With ``at_once``, they will be imported without a confirmation. This function finds errors within a row
    and conflicts between rows. It creates no objects. Raises an error of portal.uploads.errors, or
    TableEmpty.
    """
    if not data.strip():
        raise TableEmpty
    columns = (*kind.column_names, *kind.passed_over, *ERROR_COLUMNS)
    rows = table_rows(data, columns=columns, required=kind.required, max_rows=MAX_ROWS)
    data_rows = [row for row in rows if not _is_remark(row)]
    if not data_rows:
        raise TableEmpty
    made = Import.objects.create(
        kind=kind.slug,
        state=ImportState.IMPORTING if at_once else ImportState.CHECKING,
        file_name=made_plain(PurePath(file_name.replace("\0", "")).name)[:100],
        requested_by=actor.user,
        made_with=actor.token,
        created_at=now,
        begun_at=now if at_once else None,
        begun_by=actor.user if at_once else None,
        begun_with=actor.token if at_once else None,
        moved_at=now,
        remarks=len(rows) - len(data_rows),
        total=len(data_rows),
    )
    staged = _staged(kind, made, data_rows)
    ImportRow.objects.bulk_create(staged, batch_size=_AT_ONCE)
    made.refused = sum(row.state == ImportRow.State.REFUSED for row in staged)
    made.save(update_fields=["refused"])
    send_task(RUN_IMPORT, str(made.pk), made.turn)
    return made


def _is_remark(row: TableRow) -> bool:
    first = next((cell for cell in row.cells.values() if cell), "")
    return first.startswith(REMARK)


def _staged(kind: Kind, owner: Import, rows: Iterable[TableRow]) -> list[ImportRow]:
    staged = []
    first = _Claimed()
    for row in rows:
        values, refusals = kind.read(row.cells)
        # If the row is malformed, its cells are not checked.
        refusals = [*row.refusals, *([] if row.refusals else refusals)]
        if not refusals:
            refusals = first.claim(row.line, list(kind.claims(values)))
        cells = {name: row.cells[name] for name in kind.column_names if row.cells[name]}
        state = ImportRow.State.REFUSED if refusals else ImportRow.State.WAITING
        reasons = [refusal_record(each) for each in refusals]
        staged.append(
            ImportRow(
                owner=owner,
                line=row.line,
                cells=cells,
                surplus=row.surplus,
                state=state,
                refusals=reasons,
            )
        )
    return staged


class _Claimed:
    """The claims of the rows that were read so far, each with its line number."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], int] = {}
        # For each port, the claimed ranges of frames: first key, last key and line number. They are sorted
        # and do not overlap.
        self._frames: dict[str, list[tuple[int, int, int]]] = {}

    def claim(self, line: int, claims: list[Claim]) -> list[DomainError]:
        """Record the row's claims. If an earlier row has one, record none and return the conflict."""
        for claim in claims:
            if (other := self._other(claim)) is not None:
                return [RowTwice(value=claim.value, line=other, field=claim.column)]
        # Record the widest range first. The two ends of a row's line may overlap; the order later refuses
        # such a line. In this case only the wider range is recorded.
        for claim in sorted(claims, key=lambda each: each.keys[0] - each.keys[1] if each.keys else 0):
            if claim.keys is None:
                self._values[claim.key] = line
            elif self._other(claim) is None:
                insort(self._frames.setdefault(claim.group, []), (*claim.keys, line))
        return []

    def _other(self, claim: Claim) -> int | None:
        if claim.keys is None:
            return self._values.get(claim.key)
        frames = self._frames.get(claim.group, [])
        place = bisect(frames, (*claim.keys, 0))
        for low, high, line in frames[max(0, place - 1) : place + 1]:
            if overlap((low, high), claim.keys):
                return line
        return None


def imports(user: User) -> QuerySet[Import]:
    """Return the imports that this user may see, newest first. NOC staff see all imports.

    Imports of kinds that only a newer release knows are left out: this release lacks their columns.
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
