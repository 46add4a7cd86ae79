"""The trail of everything, newest first, a page at a time.

Each table of events counts by itself, so a place in the trail is the smallest number seen of each. A page
reads a page of every table by its primary key, however far back, and what stood before each change. What one
person did is read by an index of its own (sql/changes_by_person.sql).
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
# A number that no table of events has reached.
_FROM_THE_TOP = 2**62


@dataclass(frozen=True, slots=True)
class Entry:
    """A change, and all that was known of its row afterwards (of a deletion: before)."""

    change: Change
    pk: Any
    row: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Page:
    """``below``: the place to go on from, by model name; empty on the last page."""

    entries: list[Entry]
    below: dict[str, int]


def newest(*, of: str = "", by: str = "", below: Mapping[str, int] | None = None) -> Page:
    """The changes of all audited tables, or ``of`` one (a key of MODELS), further back than ``below``.

    ``by``: a user name, in the portal or through an API token; all that it did not do is left out.
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
    """Model name and number of the newest changes, one more than a page."""
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
