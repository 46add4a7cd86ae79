"""The complete audit trail, newest first, in pages.

The events of each table have their own numbers. A position in the trail is therefore one number per table:
the smallest number that the pages have shown so far. For a page, the portal reads at most one page of events
of each table by primary key, and the event before each change. This costs the same at any depth. An index
serves the changes of one person (sql/changes_by_person.sql).
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection, models

from portal.audit.history import Change, change_of, columns_of, with_before
from portal.audit.models import EVENTS

PAGE_SIZE = 50
MODELS: dict[str, type[models.Model]] = {model._meta.model_name or "": model for model in EVENTS}
# A number that is higher than the number of any event.
_FROM_THE_TOP = 2**62


@dataclass(frozen=True, slots=True)
class Entry:
    """A change, and the row's audited columns after the change. For a deletion, the columns before it."""

    change: Change
    pk: Any
    row: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Page:
    """A page of entries. ``below`` is the position of the next page, by model name; it is empty on the last
    page.
    """

    entries: list[Entry]
    below: dict[str, int]


def newest(*, of: str = "", by: str = "", below: Mapping[str, int] | None = None) -> Page:
    """Return a page of the newest changes that are below the position ``below``.

    ``of``: only changes of this table, a key of MODELS. ``by``: a user name; only changes that this user
    made, on pages or with API tokens.
    """
    names = [of] if of else list(MODELS)
    place = {name: min(_FROM_THE_TOP, (below or {}).get(name, _FROM_THE_TOP)) for name in names}
    found = _places(place, by)
    more, found = len(found) > PAGE_SIZE, found[:PAGE_SIZE]
    numbers: dict[str, list[int]] = defaultdict(list)
    for name, number in found:
        numbers[name].append(number)
    entries = {
        (name, entry.change.number): entry for name in numbers for entry in _entries(name, numbers[name])
    }
    reached = {name: min(numbers[name]) if name in numbers else place[name] for name in names}
    return Page([entries[place] for place in found], reached if more else {})


def _places(place: dict[str, int], by: str) -> list[tuple[str, int]]:
    """Return (model name, number) of the newest changes of all tables together, at most one more than a page
    has.
    """
    only = " AND pgh_context ->> 'username' = %s" if by else ""
    each = [
        f"(SELECT '{name}' AS what, pgh_id, pgh_created_at AS at FROM {EVENTS[MODELS[name]]._meta.db_table}"  # noqa: S608 - our own names
        f" WHERE pgh_id < {number:d}{only} ORDER BY pgh_id DESC LIMIT {PAGE_SIZE + 1})"
        for name, number in place.items()
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT what, pgh_id FROM ({' UNION ALL '.join(each)}) AS events"  # noqa: S608
            f" ORDER BY at DESC, what, pgh_id DESC LIMIT {PAGE_SIZE + 1}",
            [by] * len(each) if by else None,
        )
        found: list[tuple[str, int]] = cursor.fetchall()
    return found


def _entries(name: str, numbers: list[int]) -> list[Entry]:
    model = MODELS[name]
    events = EVENTS[model].objects.filter(pgh_id__in=numbers)
    return [_entry(name, event, before) for event, before in with_before(model, events)]


def _entry(name: str, event: dict[str, Any], before: dict[str, Any]) -> Entry:
    change = change_of(event, what=name, before=before)
    return Entry(change, event["pgh_obj_id"], columns_of(event))
