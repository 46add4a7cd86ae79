"""Badges: the label and colour of each state, as HTML and as template tags."""

from typing import Any, NamedTuple

from django import template
from django.utils.functional import Promise
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.diagnosis.checks import CheckState
from portal.diagnosis.health import HealthState, known_health
from portal.vll.models import Order, Vll, VllEnd
from portal.vll.order_diff import change_kinds
from portal.vll.states import TERMINAL_LIFECYCLES, AdminStatus, Lifecycle, OperStatus, OrderAction, OrderState


def badge_markup(label: str | Promise, tone: str) -> SafeString:
    """Return a badge. ``tone``: success, info, warning, danger or muted; "" for a label without a badge."""
    if not tone:
        return conditional_escape(str(label))
    return format_html('<span class="ll-badge ll-{}">{}</span>', tone, label)


# The labels that follow a number of ends, such as "3 verified".
END_COUNTS: dict[str, str] = {
    VllEnd.Status.UNANSWERED: gettext_noop("not sent yet"),
    VllEnd.Status.VERIFIED: gettext_noop("verified"),
    VllEnd.Status.TESTING: gettext_noop("testing"),
    VllEnd.Status.REMOVED: gettext_noop("removed"),
    VllEnd.Status.PENDING: gettext_noop("pending"),
    VllEnd.Status.CONFLICT: gettext_noop("conflict"),
    VllEnd.Status.FAILED: gettext_noop("failed"),
}
END_LOOKS: dict[str, tuple[str, str]] = {
    VllEnd.Status.UNANSWERED: (gettext_noop("Not queried yet"), "muted"),
    VllEnd.Status.VERIFIED: (gettext_noop("In place"), "success"),
    VllEnd.Status.TESTING: (gettext_noop("Being tested"), "info"),
    VllEnd.Status.REMOVED: (gettext_noop("Removed"), "muted"),
    VllEnd.Status.PENDING: (gettext_noop("Pending"), "warning"),
    VllEnd.Status.CONFLICT: (gettext_noop("Conflict"), "danger"),
    VllEnd.Status.FAILED: (gettext_noop("Failed"), "danger"),
}
NOT_AS_ORDERED = (gettext_noop("Not as ordered"), "warning")


def end_look(end: VllEnd) -> tuple[str, str]:
    """Return the label and the tone for the state of an end: the router's answer, or "Not as ordered".

    "Not as ordered" is returned if somebody has changed the end in VPP since a verified answer. The label of
    a status that this release does not know is the status itself.
    """
    if end.status == VllEnd.Status.VERIFIED and not end.is_as_ordered:
        return NOT_AS_ORDERED
    return END_LOOKS.get(end.status, (end.status, "muted"))


register = template.Library()


class Look(NamedTuple):
    """The label of a value, and the tone of its badge."""

    label: str
    tone: str


LOOKS: dict[str, dict[Any, Look]] = {
    "order": {
        OrderState.ACKNOWLEDGED: Look(gettext_noop("Acknowledged"), "info"),
        OrderState.PENDING_APPROVAL: Look(gettext_noop("Pending approval"), "warning"),
        OrderState.IN_PROGRESS: Look(gettext_noop("In progress"), "info"),
        OrderState.PENDING_CANCELLATION: Look(gettext_noop("Cancelling"), "warning"),
        OrderState.COMPLETED: Look(gettext_noop("Completed"), "success"),
        OrderState.FAILED: Look(gettext_noop("Failed"), "danger"),
        OrderState.REJECTED: Look(gettext_noop("Rejected"), "danger"),
        OrderState.CANCELLED: Look(gettext_noop("Cancelled"), "muted"),
    },
    "lifecycle": {
        Lifecycle.PENDING_ACTIVE: Look(gettext_noop("Pending active"), "info"),
        Lifecycle.ACTIVE: Look(gettext_noop("Active"), "success"),
        Lifecycle.SUSPENDED: Look(gettext_noop("Suspended"), "warning"),
        Lifecycle.PENDING_TERMINATE: Look(gettext_noop("Pending terminate"), "warning"),
        Lifecycle.TERMINATED: Look(gettext_noop("Terminated"), "muted"),
        Lifecycle.CANCELLED: Look(gettext_noop("Cancelled"), "muted"),
    },
    "admin": {
        AdminStatus.UP: Look(gettext_noop("Admin up"), "success"),
        AdminStatus.DOWN: Look(gettext_noop("Admin down"), "muted"),
        AdminStatus.TESTING: Look(gettext_noop("Admin testing"), "warning"),
    },
    "oper": {
        OperStatus.UP: Look(gettext_noop("Up"), "success"),
        OperStatus.DOWN: Look(gettext_noop("Down"), "danger"),
        OperStatus.UNKNOWN: Look(gettext_noop("Unknown"), "muted"),
    },
    "check": {
        CheckState.OK.value: Look(gettext_noop("In order"), "success"),
        CheckState.BROKEN.value: Look(gettext_noop("Look here"), "danger"),
        CheckState.UNKNOWN.value: Look(gettext_noop("Not known"), "muted"),
    },
    "in_sync": {
        True: Look(gettext_noop("As ordered"), "success"),
        False: Look(*NOT_AS_ORDERED),
    },
}

ACTIONS: dict[str, str] = {
    OrderAction.ADD: gettext_noop("Add"),
    OrderAction.MODIFY: gettext_noop("Change"),
    OrderAction.DELETE: gettext_noop("Remove"),
    OrderAction.TEST: gettext_noop("Test"),
}


@register.filter
def changes(order: Order) -> str:
    """Return the kinds of changes of a modify order, such as ``bandwidth, VLAN``; "" for other orders."""
    return ", ".join(str(kind.label) for kind in change_kinds(order))


def _look(name: str, value: Any) -> Look:
    """Return the label and tone of a stored value.

    If only a newer release knows the value, the label is the value.
    """
    return LOOKS[name].get(value) or Look(str(value), "muted")


@register.simple_tag
def fact(name: str, value: Any) -> SafeString:
    """Return the badge of a value. Example: ``{% fact "oper" vll.oper_status %}``."""
    look = _look(name, value)
    return badge_markup(_(look.label), look.tone)


@register.simple_tag
def status_of_end(end: VllEnd) -> SafeString:
    """Return the badge for the state of an end."""
    label, tone = end_look(end)
    return badge_markup(_(label), tone)


HEALTH_TONES = {
    HealthState.UP: "success",
    HealthState.DEGRADED: "warning",
    HealthState.DOWN: "danger",
    HealthState.SUSPENDED: "muted",
    HealthState.SETTING_UP: "info",
    HealthState.CHANGING: "info",
    HealthState.REMOVING: "muted",
    HealthState.UNKNOWN: "muted",
}


@register.inclusion_tag("ui/_health.html")
def health(vll: Vll, *, whole: bool = False) -> dict[str, Any]:
    """Return the context for the badge of a line's health. If the line has ended, the badge says how it
    ended.

    ``whole``: whether to show also the cause of the health, and since when it applies.
    """
    found = known_health(vll)
    if found is None:
        removed = vll.lifecycle == Lifecycle.TERMINATED
        return {"label": _("Removed") if removed else _("Cancelled"), "tone": "muted", "whole": whole}
    return {
        "label": found.state.label,
        "tone": HEALTH_TONES[found.state],
        "cause": found.cause,
        "since": found.since,
        "whole": whole,
    }


@register.simple_tag
def health_badge(state: HealthState) -> SafeString:
    """Return the badge of a health state, for a group of lines."""
    return badge_markup(state.label, HEALTH_TONES[state])


@register.simple_tag
def status(name: str, vll: Vll) -> SafeString:
    """Return the badge of a line's status; "–" if the line has ended. Example: ``{% status "oper" vll
    %}``.
    """
    if vll.lifecycle in TERMINAL_LIFECYCLES:
        return badge_markup("–", "")
    values = {"admin": vll.admin_status, "oper": vll.oper_status, "in_sync": vll.in_sync}
    if name == "in_sync" and vll.lifecycle == Lifecycle.PENDING_ACTIVE and not vll.in_sync:
        return badge_markup(_("Not yet"), "muted")
    look = _look(name, values[name])
    # A suspended line does not forward, so its oper status is shown without colour.
    stopped = name == "oper" and vll.admin_status == AdminStatus.DOWN
    return badge_markup(_(look.label), "muted" if stopped else look.tone)


@register.simple_tag
def link_state(is_up: bool | None, *, in_use: bool = True, reporting: bool = True) -> SafeString:
    """Return the badge for the last reported link state of a port.

    ``is_up``: None if the router reported no state. ``in_use``: whether the state matters to the line. If it
    does not matter, as for a suspended line, the badge has no colour. ``reporting``: whether the router
    reports now.
    """
    if not reporting:
        return badge_markup(_("link unknown"), "muted")
    if is_up is not None and not in_use:
        return badge_markup(_("link up") if is_up else _("link down"), "muted")
    if is_up is None:
        return badge_markup(_("link not reported"), "muted")
    if is_up:
        return badge_markup(_("link up"), "success")
    return badge_markup(_("link down"), "danger")


@register.simple_tag
def badge(label: str, tone: str) -> SafeString:
    """Return a badge. ``tone``: success, info, warning, danger or muted."""
    return badge_markup(label, tone)


@register.filter
def order_state(value: str) -> str:
    """Return the name of an order state."""
    return _(_look("order", value).label)


@register.filter
def order_action(value: str) -> str:
    """Return the name of an order action."""
    return _(ACTIONS[value]) if value in ACTIONS else value
