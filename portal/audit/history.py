"""The history of rows: each change with its values before and after, and its author."""

from collections.abc import Collection
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
from portal.inventory.models import Router, RouterCertificate, RouterEnrolment, RouterFreeze
from portal.notifications.models import MailOptOut
from portal.vll.models import Hold, Order, Vll, VllEnd

_OWN = "pgh_"
SHOWN = 200


@dataclass(frozen=True, slots=True)
class Change:
    """A change. ``before`` and ``after`` contain the columns that differ; an insert has no before, a delete
    no after.

    ``by`` contains ``username``, ``user``, ``token`` (an API token's prefix), ``task`` and ``request_id``, as
    far as they are known. It is empty for a change that bypassed the portal.
    """

    at: datetime
    number: int
    what: str
    operation: str
    by: dict[str, Any]
    before: dict[str, Any]
    after: dict[str, Any]


def vll_history(vll: Vll) -> list[Change]:
    """Return the newest changes of a VLL, its ends (prefetch them) and its orders.

    The caller has read the VLL in the user's scope.
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
    """Return the newest changes of one row, also of a deleted row, for a reader who may know of it."""
    return _newest(changes(model, {pk: model._meta.model_name or ""}))


def router_history(pk: int) -> list[Change]:
    """Return the newest changes of a router, its certificates, its freezes and its enrolment tokens."""
    return _newest(
        [
            *changes(Router, {pk: "router"}),
            *changes(RouterCertificate, "routercertificate", among=_ever_of(RouterCertificate, router_id=pk)),
            *changes(RouterEnrolment, "routerenrolment", among=_ever_of(RouterEnrolment, router_id=pk)),
            *changes(RouterFreeze, "routerfreeze", among=_ever_of(RouterFreeze, router_id=pk)),
        ]
    )


def customer_history(pk: int) -> list[Change]:
    """Return the newest changes of a customer, its members, its invitations and its bandwidth
    reservations.
    """
    return _newest(
        [
            *changes(Customer, {pk: "customer"}),
            *changes(Membership, "membership", among=_ever_of(Membership, customer_id=pk)),
            *changes(Invitation, "invitation", among=_ever_of(Invitation, customer_id=pk)),
            *changes(Hold, "hold", among=_ever_of(Hold, customer_id=pk)),
        ]
    )


def person_history(pk: int) -> list[Change]:
    """Return the newest changes of a user, the user's roles, mail preferences and means to sign in:
    addresses, external identities, second factor and API tokens.
    """
    return _newest(
        [
            *changes(User, {pk: "user"}),
            *changes(Membership, "membership", among=_ever_of(Membership, user_id=pk)),
            *changes(ApiToken, "apitoken", among=_ever_of(ApiToken, user_id=pk)),
            *changes(Authenticator, "authenticator", among=_ever_of(Authenticator, user_id=pk)),
            *changes(EmailAddress, "emailaddress", among=_ever_of(EmailAddress, user_id=pk)),
            *changes(SocialAccount, "socialaccount", among=_ever_of(SocialAccount, user_id=pk)),
            *changes(MailOptOut, "mailoptout", among=_ever_of(MailOptOut, user_id=pk)),
        ]
    )


def with_last_change(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Return ``rows`` of an audited table with ``changed_at`` and ``changed_by`` (a user name, or None)."""
    newest = EVENTS[rows.model].objects.filter(pgh_obj_id=OuterRef("pk")).order_by("-pgh_id")
    found: QuerySet[Any] = rows.annotate(
        changed_at=Subquery(newest.values("pgh_created_at")[:1]),
        changed_by=Subquery(newest.values("pgh_context__username")[:1]),
    )
    return found


def _ever_of(model: type[models.Model], **owner: int) -> QuerySet[Any, Any]:
    """Return all rows that ever belonged to the owner. Only events still name deleted rows."""
    found: QuerySet[Any, Any] = EVENTS[model].objects.filter(**owner).values("pgh_obj_id")
    return found


def _newest(found: list[Change]) -> list[Change]:
    return sorted(found, key=lambda change: (change.at, change.number), reverse=True)[:SHOWN]


def changes(
    model: type[models.Model], names: dict[Any, str] | str, *, among: models.QuerySet[Any, Any] | None = None
) -> list[Change]:
    """Return the newest changes of rows of ``model``, at most SHOWN, oldest first.

    ``names`` gives a name to each row, or one name to all rows of ``among``.
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
    """Return each of ``events`` of ``model``, with the event before it of the same row, or nothing."""
    every = EVENTS[model].objects
    earlier = every.filter(pgh_obj_id=OuterRef("pgh_obj_id"), pgh_id__lt=OuterRef("pgh_id"))
    # The prefix marks a field of the event, so that it is not taken for a column of the row.
    found = events.annotate(pgh_previous=Subquery(earlier.order_by("-pgh_id").values("pgh_id")[:1]))
    rows = [_with_columns(model, row) for row in found.values()]
    was = {row["pgh_id"]: row for row in rows}
    missing = {row["pgh_previous"] for row in rows} - was.keys() - {None}
    was |= {row["pgh_id"]: _with_columns(model, row) for row in every.filter(pgh_id__in=missing).values()}
    return [(row, was.get(row["pgh_previous"], {})) for row in rows]


def _with_columns(model: type[models.Model], row: dict[str, Any]) -> dict[str, Any]:
    """Return the row with the names of its columns, which stay the same when a field is renamed."""
    columns = {field.attname: field.column for field in EVENTS[model]._meta.concrete_fields}
    return {columns.get(name, name): value for name, value in row.items()}


def change_of(event: dict[str, Any], *, what: str, before: dict[str, Any]) -> Change:
    """Return the change that an event describes; ``before``: the event before it, or nothing."""
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
    """Return the row as an event stores it, without the fields of the event itself."""
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
