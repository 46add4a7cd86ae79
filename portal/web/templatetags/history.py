"""The audit trail in words."""

from typing import Any

from django import template
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.audit.history import Change

register = template.Library()

_WHAT = {
    ("vll", "insert"): gettext_noop("Line created"),
    ("vll", "update"): gettext_noop("Line changed"),
    ("vll", "delete"): gettext_noop("Line deleted"),
    ("a_end", "insert"): gettext_noop("A end created"),
    ("a_end", "update"): gettext_noop("A end changed"),
    ("a_end", "delete"): gettext_noop("A end deleted"),
    ("z_end", "insert"): gettext_noop("Z end created"),
    ("z_end", "update"): gettext_noop("Z end changed"),
    ("z_end", "delete"): gettext_noop("Z end deleted"),
    ("order", "insert"): gettext_noop("Order created"),
    ("order", "update"): gettext_noop("Order changed"),
    ("order", "delete"): gettext_noop("Order deleted"),
}


@register.filter
def happening(change: Change) -> str:
    """``Line changed``."""
    return _(_WHAT[change.what, change.operation])


@register.filter
def actor(change: Change) -> str:
    """Who: a user, a user's API token, a task of ours, or somebody with a database client."""
    by = change.by
    if username := by.get("username"):
        return (
            _("%(user)s, token %(token)s…") % {"user": username, "token": by["token"]}
            if by.get("token")
            else str(username)
        )
    return str(by.get("task") or _("outside the portal"))


@register.filter
def differences(change: Change) -> list[dict[str, Any]]:
    """``[{"name", "before", "after"}]`` of an update; a creation has none, its values are the page's own."""
    if change.operation != "update":
        return []
    return [
        {"name": name, "before": _text(change.before.get(name)), "after": _text(change.after[name])}
        for name in change.after
    ]


def _text(value: Any) -> str:
    return "–" if value is None or value == "" else str(value)
