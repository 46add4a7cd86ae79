"""The pages of a list. ``?after=`` is the cursor of a page. An invalid cursor shows the first page."""

from typing import Any

from django.db.models import QuerySet

from portal.core.db.keyset import CursorInvalid, Page, page_of

PAGE_SIZE = 50


def newest_first(rows: QuerySet[Any], *, by: str, after: str) -> Page:
    """Return the page after the cursor ``after``. ``by``: the name of a column with a time."""
    return in_order(rows, by=(f"-{by}", "-id"), after=after, size=PAGE_SIZE)


def in_order(rows: QuerySet[Any], *, by: tuple[str, ...], after: str, size: int = PAGE_SIZE) -> Page:
    """Return the page after the cursor ``after``. ``by``: the ordering of portal.core.db.keyset."""
    try:
        return page_of(rows, by, after=after, size=size)
    except CursorInvalid:
        return page_of(rows, by, after="", size=size)
