"""The history of objects, and of everything, from the audit trail."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.db import models
from django.db.models import OuterRef, QuerySet, Subquery

from portal.accounts.models import ApiToken, Customer, Invitation, Membership, User
from portal.audit.models import EVENTS
from portal.core.db.statements import rows_of
from portal.inventory.models import Router, RouterCertificate, RouterEnrolment, RouterFreeze
from portal.notifications.models import MailOptOut
from portal.vll.models import Order, Reservation, Vll, VllEnd

_OWN = "pgh_"
SHOWN = 200


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a row. ``before`` and ``after`` contain the columns that differ.

    ``before`` is empty for an insert, ``after`` for a delete. ``by`` contains ``username``, ``user``,
    ``token`` (the prefix of an API token), ``task`` and ``request_id``, as far as they are known. It is empty
    if the change bypassed the portal.
    """

    at: datetime
    number: int
    what: str
    operation: str
    by: dict[str, Any]
    before: dict[str, Any]
    after: dict[str, Any]


def vll_history(vll: Vll) -> list[Change]:
    """Return the newest changes of a VLL, its ends and its orders, newest first.

    The ends should be prefetched. The caller must have read the VLL in the user's tenant scope.
    """
    sides = {end.pk: f"{end.side}_end" for end in vll.ends.all()}
    found = [
        *changes(Vll, {vll.pk: "vll"}),
        *changes(VllEnd, sides),
        *changes(Order, "order", among=Order.objects.filter(vll=vll).values("pk")),
    ]
    return sorted(found, key=lambda change: (change.at, change.what == "order", change.number), reverse=True)[
        :SHOWN
    ]


def object_history(model: type[models.Model], pk: int) -> list[Change]:
    """Return the newest changes of one row, newest first. The row may be deleted.

    The caller must have checked that the reader may know the row.
    """
    return _with_owned(model, pk)


def router_history(pk: int) -> list[Change]:
    """Return the newest changes of a router and its certificates, freezes and enrolments, newest first."""
    return _with_owned(Router, pk, RouterCertificate, RouterEnrolment, RouterFreeze)


def customer_history(pk: int) -> list[Change]:
    """Return the newest changes of a customer, its members, invitations and reservations, newest first."""
    return _with_owned(Customer, pk, Membership, Invitation, Reservation)


def person_history(pk: int) -> list[Change]:
    """Return the newest changes of a user, of the user's roles and mail preferences, and of means to sign in.

    The newest change is first. Means to sign in: addresses, external identities, second factor, API tokens.
    """
    return _with_owned(User, pk, Membership, ApiToken, Authenticator, EmailAddress, SocialAccount, MailOptOut)


def _with_owned(model: type[models.Model], pk: int, *owned: type[models.Model]) -> list[Change]:
    """Return the newest changes of a row, and of all rows of ``owned`` that ever belonged to it."""
    found = changes(model, {pk: _name(model)})
    for each in owned:
        # The events also have the ids of deleted rows.
        among = EVENTS[each].objects.filter(**{f"{model._meta.model_name}_id": pk}).values("pgh_obj_id")
        found += changes(each, _name(each), among=among)
    return sorted(found, key=lambda change: (change.at, change.number), reverse=True)[:SHOWN]


def _name(model: type[models.Model]) -> str:
    """Return the name of rows of the model in ``Change.what``. The API calls a reservation a hold."""
    return "hold" if model is Reservation else model._meta.model_name or ""


def with_last_change(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Annotate ``rows`` of an audited table with the time and the user name of their last change.

    The names are ``changed_at`` and ``changed_by``. ``changed_by`` is None if no user made the change.
    """
    newest = EVENTS[rows.model].objects.filter(pgh_obj_id=OuterRef("pk")).order_by("-pgh_id")
    found: QuerySet[Any] = rows.annotate(
        changed_at=Subquery(newest.values("pgh_created_at")[:1]),
        changed_by=Subquery(newest.values("pgh_context__username")[:1]),
    )
    return found


def changes(
    model: type[models.Model], names: dict[Any, str] | str, *, among: models.QuerySet[Any, Any] | None = None
) -> list[Change]:
    """Return the newest changes of rows of ``model``: at most SHOWN changes, sorted from old to new.

    ``names`` maps the key of each row to the name that ``Change.what`` gets. If ``among`` selects the rows,
    ``names`` is one name for all of them.
    """
    rows = list(names) if among is None else among
    newest = EVENTS[model].objects.filter(pgh_obj_id__in=rows).order_by("-pgh_id")[:SHOWN]
    return [
        change_of(event, what=names if isinstance(names, str) else names[event["pgh_obj_id"]], before=before)
        for event, before in reversed(with_before(model, newest))
    ]


def with_before(
    model: type[models.Model], events: QuerySet[Any]
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return each event with the previous event of the same row, or with an empty dictionary."""
    every = EVENTS[model].objects
    earlier = every.filter(pgh_obj_id=OuterRef("pgh_obj_id"), pgh_id__lt=OuterRef("pgh_id"))
    # The prefix ``pgh_`` shows that this is a field of the event and not a column of the row.
    found = events.annotate(pgh_previous=Subquery(earlier.order_by("-pgh_id").values("pgh_id")[:1]))
    columns = {field.attname: field.column for field in EVENTS[model]._meta.concrete_fields}
    rows = [_renamed(row, columns) for row in found.values()]
    was = {row["pgh_id"]: row for row in rows}
    missing = {row["pgh_previous"] for row in rows} - was.keys() - {None}
    was |= {row["pgh_id"]: _renamed(row, columns) for row in every.filter(pgh_id__in=missing).values()}
    return [(row, was.get(row["pgh_previous"], {})) for row in rows]


def _renamed(row: dict[str, Any], columns: dict[str, str]) -> dict[str, Any]:
    """Return the row by column instead of field: the column of a renamed field keeps its name."""
    return {columns.get(name, name): value for name, value in row.items()}


def change_of(event: dict[str, Any], *, what: str, before: dict[str, Any]) -> Change:
    """Return the change that an event describes. ``before`` is the previous event of the row, or empty."""
    was, now_is = _difference(event["pgh_label"], columns_of(before), columns_of(event))
    return Change(
        at=event["pgh_created_at"],
        number=event["pgh_id"],
        what=what,
        operation=event["pgh_label"],
        by=event["pgh_context"] or {},
        before=was,
        after=now_is,
    )


def columns_of(event: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of the row in an event, without the event's own fields."""
    return {name: value for name, value in event.items() if not name.startswith(_OWN)}


def _difference(
    operation: str, was: dict[str, Any], now_is: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    if operation == "delete":
        return now_is, {}
    if operation == "insert":
        return {}, now_is
    differing = [name for name in now_is if was.get(name) != now_is[name]]
    return _only(was, differing), _only(now_is, differing)


def _only(values: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: values[name] for name in names if name in values}


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
    """A page of entries. ``below``: the position of the next page by model name, empty on the last page."""

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
    """Return (model name, number) of the newest changes of all tables, at most one more than a page has."""
    only = " AND pgh_context ->> 'username' = %s" if by else ""
    each = [
        f"(SELECT '{name}' AS what, pgh_id, pgh_created_at AS at FROM {EVENTS[MODELS[name]]._meta.db_table}"  # noqa: S608 - our own names
        f" WHERE pgh_id < {number:d}{only} ORDER BY pgh_id DESC LIMIT {PAGE_SIZE + 1})"
        for name, number in place.items()
    ]
    return rows_of(
        f"SELECT what, pgh_id FROM ({' UNION ALL '.join(each)}) AS events"  # noqa: S608
        f" ORDER BY at DESC, what, pgh_id DESC LIMIT {PAGE_SIZE + 1}",
        [by] * len(each) if by else None,
    )


def _entries(name: str, numbers: list[int]) -> list[Entry]:
    model = MODELS[name]
    events = EVENTS[model].objects.filter(pgh_id__in=numbers)
    return [
        Entry(change_of(event, what=name, before=before), event["pgh_obj_id"], columns_of(event))
        for event, before in with_before(model, events)
    ]
