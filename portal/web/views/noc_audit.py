"""The page with the audit trail of all objects."""

import base64
import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import Model
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from portal.accounts import permissions
from portal.accounts.models import Customer, User
from portal.alarms.models import Alarm
from portal.audit.feed import MODELS, Entry, Page, newest
from portal.audit.history import Change
from portal.core.replica import from_replica
from portal.inventory.models import Router
from portal.vll.models import Vll
from portal.web.page_guard import SignedInRequest, requires
from portal.web.templatetags.history import WHAT

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
    "quarantine": ("web:noc-quarantine", "id"),
    "troublereport": ("web:diagnosis", "vll_id"),
    "operatorstate": ("web:noc-alarm", "alarm_id"),
}
# The maximum length of a user name.
LONGEST_NAME = 150
_NAMES = ("name", "username", "email", "interface", "a_interface", "description", "reason")
# For tables whose rows have no name: the column with the id of another object, and the model of that object.
# The page shows the name of that object.
_OWNERS: dict[str, tuple[str, type[Model]]] = {
    "vllend": ("vll_id", Vll),
    "order": ("vll_id", Vll),
    "membership": ("user_id", User),
    "apitoken": ("user_id", User),
    "authenticator": ("user_id", User),
    "emailaddress": ("user_id", User),
    "socialaccount": ("user_id", User),
    "mailoptout": ("user_id", User),
    "routercertificate": ("router_id", Router),
    "routerenrolment": ("router_id", Router),
    "routerfreeze": ("router_id", Router),
    "hold": ("customer_id", Customer),
    "quarantine": ("router_id", Router),
    "troublereport": ("vll_id", Vll),
    "operatorstate": ("alarm_id", Alarm),
}


@dataclass(frozen=True, slots=True)
class Row:
    """An entry of the audit trail.

    ``name``: the name of the changed row. ``address``: the address of the page with its history.
    """

    change: Change
    name: str
    address: str


@requires(permissions.may_run_the_network)
def page(request: SignedInRequest) -> HttpResponse:
    """Show the audit trail, newest first. ``?what=`` selects a table, and ``?by=`` a user.

    ``?after=`` is the cursor for older entries. If it is invalid, the first page is shown.
    """
    what = request.GET.get("what", "")
    what = what if what in MODELS else ""
    by = request.GET.get("by", "").replace("\0", "").strip()[:LONGEST_NAME]
    place = _place(request.GET.get("after", ""))

    def read() -> tuple[Page, list[Row]]:
        found = newest(of=what, by=by, below=place)
        return found, _rows(found.entries)

    found, rows = from_replica(request, read)
    context = {
        "rows": rows,
        "page": {"after": _written(found.below)},
        "what": what,
        "by": by,
        "whats": sorted(((name, _(WHAT[name])) for name in MODELS), key=lambda each: each[1]),
        "keep": urlencode({name: value for name, value in (("what", what), ("by", by)) if value}),
    }
    return render(request, "noc/audit.html", context)


def _rows(entries: list[Entry]) -> list[Row]:
    ids_of: dict[type[Model], set[Any]] = defaultdict(set)
    for entry in entries:
        if owner := _OWNERS.get(entry.change.what):
            column, model = owner
            ids_of[model].add(entry.row[column])
    owners = {model: model._default_manager.in_bulk(ids) for model, ids in ids_of.items()}
    return [_row(entry, owners) for entry in entries]


def _row(entry: Entry, owners: dict[Any, dict[Any, Any]]) -> Row:
    what = entry.change.what
    page, column = PAGES[what]
    if owner := _OWNERS.get(what):
        name = str(owners[owner[1]].get(entry.row[owner[0]], entry.pk))
    else:
        name = next((str(entry.row[each]) for each in _NAMES if entry.row.get(each)), str(entry.pk))
    return Row(entry.change, name, reverse(page, args=[entry.row[column]]))


def _written(below: dict[str, int]) -> str:
    return base64.urlsafe_b64encode(json.dumps(below).encode()).decode() if below else ""


def _place(after: str) -> dict[str, int]:
    try:
        read: Any = json.loads(base64.urlsafe_b64decode(after)) if after else {}
    except (ValueError, RecursionError):
        return {}
    plain = isinstance(read, dict) and all(type(number) is int and number >= 0 for number in read.values())
    return read if plain else {}
