"""Template filters for the audit trail."""

import re
from datetime import datetime
from typing import Any

from django import template
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.audit.history import Change
from portal.core.reader_zone import precise_moment_text

register = template.Library()

WHAT = {
    "vll": gettext_noop("Line"),
    "a_end": gettext_noop("A end"),
    "z_end": gettext_noop("Z end"),
    "vllend": gettext_noop("End of a line"),
    "order": gettext_noop("Order"),
    "site": gettext_noop("Site"),
    "router": gettext_noop("Router"),
    "port": gettext_noop("Port"),
    "backbonelink": gettext_noop("Link"),
    "reservedvnirange": gettext_noop("Reserved range"),
    "customer": gettext_noop("Customer"),
    "membership": gettext_noop("Membership"),
    "invitation": gettext_noop("Invitation"),
    "user": gettext_noop("Account"),
    "apitoken": gettext_noop("API token"),
    "authenticator": gettext_noop("Second factor"),
    "emailaddress": gettext_noop("Sign-in address"),
    "socialaccount": gettext_noop("Single sign-on"),
    "routercertificate": gettext_noop("Certificate"),
    "routerenrolment": gettext_noop("Enrolment"),
    "routerfreeze": gettext_noop("Freeze"),
    "hold": gettext_noop("Reservation"),
    "webhook": gettext_noop("Webhook"),
    "mailoptout": gettext_noop("Notification opt-outs"),
    "quarantine": gettext_noop("Quarantined samples"),
    "troublereport": gettext_noop("Trouble report"),
    "operatorstate": gettext_noop("Alarm"),
}
_DONE = {
    "insert": gettext_noop("%(what)s created"),
    "update": gettext_noop("%(what)s changed"),
    "delete": gettext_noop("%(what)s deleted"),
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
    done = _(_DONE[change.operation]) % {"what": _(WHAT[change.what])}
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
    if username := by.get("username"):
        return (
            _("%(user)s, token %(token)s…") % {"user": username, "token": by["token"]}
            if by.get("token")
            else str(username)
        )
    if by.get("task"):
        return _("the portal, automatically")
    return _("somebody who had not signed in") if by.get("request_id") else _("somebody outside the portal")


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
        return _("yes") if value else _("no")
    # Show timestamps of PostgreSQL without microseconds.
    return "–" if value is None or value == "" else _MOMENT.sub(_moment, str(value))
