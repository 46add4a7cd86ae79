"""Keyset paging of newest-first lists: the last page costs what the first does."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class Page:
    """Up to PAGE_SIZE rows, and the ``?after=`` of the rows that follow ("" when there are none)."""

    rows: list[Any]
    after: str


def newest_first(rows: QuerySet[Any], *, by: str, after: str) -> Page:
    """The page behind ``after``, of ``rows`` ordered by (``-by``, ``-id``) where ``by`` is a moment.

    A cursor that cannot be read starts from the top: it only ever comes from an edited address.
    """
    rows = rows.order_by(f"-{by}", "-id")
    if place := _read(after):
        at, last_id = place
        rows = rows.filter(Q(**{f"{by}__lt": at}) | Q(**{by: at, "id__lt": last_id}))
    found = list(rows[: PAGE_SIZE + 1])
    more = len(found) > PAGE_SIZE
    found = found[:PAGE_SIZE]
    return Page(rows=found, after=f"{getattr(found[-1], by).isoformat()}_{found[-1].pk}" if more else "")


def _read(after: str) -> tuple[datetime, UUID] | None:
    at, _, last_id = after.partition("_")
    try:
        moment, row = datetime.fromisoformat(at), UUID(last_id)
    except ValueError:
        return None
    return None if moment.tzinfo is None else (moment, row)
