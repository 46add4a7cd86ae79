"""Staging of files: a file is read once, completely, and its rows are stored until they are imported."""

from bisect import bisect, insort
from collections.abc import Iterable
from datetime import datetime
from pathlib import PurePath

from django.db import transaction

from portal.allocation.vlan_leases import overlap
from portal.celery_tasks import RUN_IMPORT
from portal.core.errors import DomainError
from portal.core.plain_text import made_plain
from portal.events.outbox import send_task
from portal.imports.errors import RowTwice, TableEmpty
from portal.imports.kinds.kind import ERROR_COLUMNS, Actor, Claim, Kind
from portal.imports.models import Import, ImportRow, ImportState
from portal.imports.refusals import refusal_record
from portal.uploads.table import TableRow, table_rows

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
    rows = _rows(kind, data)
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
    send_task(RUN_IMPORT, str(made.pk), made.turn, now=now)
    return made


def _rows(kind: Kind, data: bytes) -> list[TableRow]:
    columns = (*kind.column_names, *kind.passed_over, *ERROR_COLUMNS)
    return table_rows(data, columns=columns, required=kind.required, max_rows=MAX_ROWS)


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
        """Record the claims of a row. If an earlier row has one of the claims, record nothing and return the
        conflict.
        """
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
