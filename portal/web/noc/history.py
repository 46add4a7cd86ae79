"""The audit trail, and the history of one object."""

import re
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django import template
from django.db.models import Model
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from portal.accounts import permissions
from portal.accounts.models import Customer, User
from portal.alarms.models import Alarm
from portal.allocation.models import ReservedVniRange
from portal.audit.history import (
    MODELS,
    Change,
    Entry,
    Page,
    customer_history,
    newest,
    object_history,
    person_history,
    router_history,
)
from portal.core.db import row_conditions
from portal.core.db.replica import from_replica
from portal.core.reader_texts import precise_moment_text
from portal.inventory.models import BackboneLink, Port, Router, Site
from portal.notifications.models import Webhook
from portal.vll.models import Vll
from portal.web.noc.inventory.inventory_kinds import CUSTOMERS, LINKS, PORTS, ROUTERS, SITES, VNI_RANGES, Kind
from portal.web.page.base import SignedInRequest, requires

register = template.Library()

WHAT = {
    "vll": _("Line"),
    "a_end": _("A end"),
    "z_end": _("Z end"),
    "vllend": _("End of a line"),
    "order": _("Order"),
    "site": _("Site"),
    "router": _("Router"),
    "port": _("Port"),
    "backbonelink": _("Link"),
    "reservedvnirange": _("Reserved range"),
    "customer": _("Customer"),
    "membership": _("Membership"),
    "invitation": _("Invitation"),
    "user": _("Account"),
    "apitoken": _("API token"),
    "authenticator": _("Second factor"),
    "emailaddress": _("Sign-in address"),
    "socialaccount": _("Single sign-on"),
    "routercertificate": _("Certificate"),
    "routerenrolment": _("Enrolment"),
    "routerfreeze": _("Freeze"),
    "hold": _("Reservation"),
    "webhook": _("Webhook"),
    "mailoptout": _("Notification opt-outs"),
    "quarantine": _("Quarantined samples"),
    "troublereport": _("Trouble report"),
    "operatorstate": _("Alarm"),
}
_DONE = {
    "insert": _("%(what)s created"),
    "update": _("%(what)s changed"),
    "delete": _("%(what)s deleted"),
}
# The history of one object can have several rows of these tables.
_SEVERAL = (
    "membership",
    "invitation",
    "apitoken",
    "authenticator",
    "emailaddress",
    "socialaccount",
    "routercertificate",
    "routerfreeze",
    "hold",
    "mailoptout",
)
_MOMENT = re.compile(r"^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.\d+)?\+00:00$")
_IDENTIFYING = ("role", "email", "prefix", "type", "provider", "serial", "held_by", "group", "reason")


@register.filter
def happening(change: Change) -> str:
    """Return the change in words, such as ``Line changed``.

    If the history may contain changes of several rows of the same table, the text also names the row:
    ``Second factor deleted (totp)``.
    """
    done = _DONE[change.operation] % {"what": WHAT[change.what]}
    if change.operation == "update":
        return done
    values = change.after or change.before
    names = (
        [str(values[name]) for name in _IDENTIFYING if values.get(name)] if change.what in _SEVERAL else []
    )
    return f"{done} ({', '.join(names)})" if names else done


@register.filter
def actor(change: Change) -> str:
    """Return who made the change.

    This is a user (perhaps with an API token), the portal, somebody who was not signed in, or somebody with a
    database client.
    """
    by = change.by
    if user := by.get("username"):
        token = by.get("token")
        return _("%(user)s, token %(token)s…") % {"user": user, "token": token} if token else str(user)
    if by.get("task"):
        return str(_("the portal, automatically"))
    return str(
        _("somebody who had not signed in") if by.get("request_id") else _("somebody outside the portal")
    )


@register.filter
def differences(change: Change) -> list[dict[str, Any]]:
    """Return the differences of an update as ``[{"name", "before", "after"}]``.

    The list is empty for an insertion or a deletion.
    """
    if change.operation != "update":
        return []
    return [
        {"name": name, "before": _text(change.before.get(name)), "after": _text(change.after[name])}
        for name in change.after
    ]


def _moment(found: re.Match[str]) -> str:
    return precise_moment_text(datetime.fromisoformat(found[0]))


def _text(value: Any) -> str:
    if isinstance(value, dict) and value.get("message"):
        return str(value["message"])
    if isinstance(value, bool):
        return str(_("yes") if value else _("no"))
    # Show timestamps of PostgreSQL without microseconds.
    return "–" if value is None or value == "" else _MOMENT.sub(_moment, str(value))


# For each audited table: the page that has the history of its rows, and the column with the id for the page's
# address. A test checks that no table is missing.
PAGES = {
    "vll": ("web:vll", "id"),
    "vllend": ("web:vll", "vll_id"),
    "order": ("web:vll", "vll_id"),
    "site": ("web:noc-sites-history", "id"),
    "router": ("web:noc-router", "id"),
    "port": ("web:noc-ports-history", "id"),
    "backbonelink": ("web:noc-links-history", "id"),
    "reservedvnirange": ("web:noc-vni-ranges-history", "id"),
    "customer": ("web:noc-customers-history", "id"),
    "membership": ("web:noc-person-history", "user_id"),
    "invitation": ("web:noc-customers-history", "customer_id"),
    "user": ("web:noc-person-history", "id"),
    "apitoken": ("web:noc-person-history", "user_id"),
    "authenticator": ("web:noc-person-history", "user_id"),
    "emailaddress": ("web:noc-person-history", "user_id"),
    "socialaccount": ("web:noc-person-history", "user_id"),
    "routercertificate": ("web:noc-router", "router_id"),
    "routerenrolment": ("web:noc-router", "router_id"),
    "routerfreeze": ("web:noc-router", "router_id"),
    "hold": ("web:noc-customers-history", "customer_id"),
    "webhook": ("web:noc-webhook-history", "id"),
    "mailoptout": ("web:noc-person-history", "user_id"),
    "quarantine": ("web:noc-router", "router_id"),
    "troublereport": ("web:diagnosis", "vll_id"),
    "operatorstate": ("web:noc-alarm", "alarm_id"),
}
# The maximum length of a user name.
LONGEST_NAME = 150
_NAMES = ("name", "username", "email", "interface", "a_interface", "description", "reason")
_MODELS: dict[str, type[Model]] = {
    "vll_id": Vll,
    "user_id": User,
    "router_id": Router,
    "customer_id": Customer,
    "alarm_id": Alarm,
}
# For tables whose rows have no name: the column with the id of another object, and the model of that object.
# The page shows the name of that object. It is the object whose page has the history of the row (PAGES),
# except for invitations: their name is the e-mail address.
_OWNERS = {
    what: (column, _MODELS[column])
    for what, (_page_name, column) in PAGES.items()
    if column in _MODELS and what != "invitation"
}


@requires(permissions.may_run_the_network)
def page(request: SignedInRequest) -> HttpResponse:
    """Show the audit trail, newest first. ``?what=`` selects a table, and ``?by=`` a user.

    ``?after=`` is the cursor for older entries. If it is invalid, the first page is shown.
    """
    what = request.GET.get("what", "")
    what = what if what in MODELS else ""
    by = request.GET.get("by", "").replace("\0", "").strip()[:LONGEST_NAME]
    place = _place(request.GET.get("after", ""))

    def read() -> tuple[Page, list[dict[str, Any]]]:
        found = newest(of=what, by=by, below=place)
        return found, _rows(found.entries)

    found, rows = from_replica(request, read)
    context = {
        "rows": rows,
        "page": {"after": row_conditions.written(found.below) if found.below else ""},
        "what": what,
        "by": by,
        "whats": sorted(((name, str(WHAT[name])) for name in MODELS), key=lambda each: each[1]),
        "keep": urlencode({name: value for name, value in (("what", what), ("by", by)) if value}),
    }
    return render(request, "noc/history/audit.html", context)


def _rows(entries: list[Entry]) -> list[dict[str, Any]]:
    ids_of: dict[type[Model], set[Any]] = defaultdict(set)
    for entry in entries:
        if owner := _OWNERS.get(entry.change.what):
            column, model = owner
            ids_of[model].add(entry.row[column])
    owners = {model: model._default_manager.in_bulk(ids) for model, ids in ids_of.items()}
    return [_row(entry, owners) for entry in entries]


def _row(entry: Entry, owners: dict[Any, dict[Any, Any]]) -> dict[str, Any]:
    """Return an entry of the audit trail, with the address of the page that has the row's history."""
    what = entry.change.what
    page, column = PAGES[what]
    if owner := _OWNERS.get(what):
        name = str(owners[owner[1]].get(entry.row[owner[0]], entry.pk))
    else:
        name = next((str(entry.row[each]) for each in _NAMES if entry.row.get(each)), str(entry.pk))
    return {"change": entry.change, "name": name, "address": reverse(page, args=[entry.row[column]])}


def _place(after: str) -> dict[str, int]:
    try:
        place: Any = row_conditions.read(after)
    except row_conditions.CursorInvalid:
        return {}
    plain = isinstance(place, dict) and all(type(number) is int and number >= 0 for number in place.values())
    return place if plain else {}


_INVENTORY = {
    SITES.slug: Site,
    PORTS.slug: Port,
    LINKS.slug: BackboneLink,
    VNI_RANGES.slug: ReservedVniRange,
}


@requires(permissions.may_run_the_network)
def history(request: SignedInRequest, kind: Kind, **ids: int) -> HttpResponse:
    """Show the history of an inventory object, which may be removed."""
    pk = ids[f"{kind.keyword}_id"]
    if kind is CUSTOMERS:
        return _page(request, kind, Customer, customer_history, pk)
    if kind is ROUTERS:
        return _page(request, kind, Router, router_history, pk)
    model = _INVENTORY[kind.slug]
    return _page(request, kind, model, lambda found: object_history(model, found), pk)


@requires(permissions.may_run_the_network)
def person(request: SignedInRequest, user_id: int) -> HttpResponse:
    """Show the history of an account, its memberships and its sign-in methods."""
    return _page(request, None, User, person_history, user_id)


@requires(permissions.may_run_the_network)
def webhook(request: SignedInRequest, webhook_id: int) -> HttpResponse:
    """Show the history of a webhook, which may be removed."""
    return _page(request, None, Webhook, lambda found: object_history(Webhook, found), webhook_id)


def _page(
    request: SignedInRequest, kind: Kind | None, model: type, read: Callable[[int], list[Change]], pk: int
) -> HttpResponse:
    found = read(pk)
    row = model.objects.filter(pk=pk).first()  # type: ignore[attr-defined]
    if row is None and not found:
        raise Http404
    context = {"kind": kind, "row": row or pk, "history": found}
    return render(request, "noc/history/history.html", context)
