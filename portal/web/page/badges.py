"""Badges: the label and colour of each state, as HTML and as template tags."""

from typing import Any

from django import template
from django.utils.functional import Promise
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from portal.allocation.cpu_core_bookings import CoreUse
from portal.core.reader_texts import number_text
from portal.diagnosis.checks import CheckState
from portal.diagnosis.health import HealthState, known_health
from portal.inventory.models import Router
from portal.vll.line_revision import change_kinds
from portal.vll.models import Order, Vll, VllEnd
from portal.vll.states import TERMINAL_LIFECYCLES, AdminStatus, Lifecycle, OperStatus, OrderAction, OrderState


def badge_markup(label: str | Promise, tone: str) -> SafeString:
    """Return a badge. ``tone``: success, info, warning, danger or muted; "" for a label without a badge."""
    if not tone:
        return conditional_escape(str(label))
    return format_html('<span class="ll-badge ll-{}">{}</span>', tone, label)


# The labels that follow a number of ends, such as "3 verified".
END_COUNTS: dict[str, str | Promise] = {
    VllEnd.Status.UNANSWERED: _("not sent yet"),
    VllEnd.Status.VERIFIED: _("verified"),
    VllEnd.Status.TESTING: _("testing"),
    VllEnd.Status.REMOVED: _("removed"),
    VllEnd.Status.PENDING: _("pending"),
    VllEnd.Status.CONFLICT: _("conflict"),
    VllEnd.Status.FAILED: _("failed"),
}
END_LOOKS: dict[str, tuple[str | Promise, str]] = {
    VllEnd.Status.UNANSWERED: (_("Not queried yet"), "muted"),
    VllEnd.Status.VERIFIED: (_("In place"), "success"),
    VllEnd.Status.TESTING: (_("Being tested"), "info"),
    VllEnd.Status.REMOVED: (_("Removed"), "muted"),
    VllEnd.Status.PENDING: (_("Pending"), "warning"),
    VllEnd.Status.CONFLICT: (_("Conflict"), "danger"),
    VllEnd.Status.FAILED: (_("Failed"), "danger"),
}
NOT_AS_ORDERED = (_("Not as ordered"), "warning")


def end_look(end: VllEnd) -> tuple[str | Promise, str]:
    """Return the label and the tone for the state of an end: the router's answer, or "Not as ordered".

    "Not as ordered" is returned if somebody has changed the end in VPP since a verified answer. The label of
    a status that this release does not know is the status itself.
    """
    if end.status == VllEnd.Status.VERIFIED and not end.is_as_ordered:
        return NOT_AS_ORDERED
    return END_LOOKS.get(end.status, (end.status, "muted"))


register = template.Library()
register.simple_tag(badge_markup, name="badge")

# The label of each value, and the tone of its badge.
LOOKS: dict[str, dict[Any, tuple[str | Promise, str]]] = {
    "order": {
        OrderState.ACKNOWLEDGED: (_("Acknowledged"), "info"),
        OrderState.PENDING_APPROVAL: (_("Pending approval"), "warning"),
        OrderState.IN_PROGRESS: (_("In progress"), "info"),
        OrderState.PENDING_CANCELLATION: (_("Cancelling"), "warning"),
        OrderState.COMPLETED: (_("Completed"), "success"),
        OrderState.FAILED: (_("Failed"), "danger"),
        OrderState.REJECTED: (_("Rejected"), "danger"),
        OrderState.CANCELLED: (_("Cancelled"), "muted"),
    },
    "lifecycle": {
        Lifecycle.PENDING_ACTIVE: (_("Pending active"), "info"),
        Lifecycle.ACTIVE: (_("Active"), "success"),
        Lifecycle.SUSPENDED: (_("Suspended"), "warning"),
        Lifecycle.PENDING_TERMINATE: (_("Pending terminate"), "warning"),
        Lifecycle.TERMINATED: (_("Terminated"), "muted"),
        Lifecycle.CANCELLED: (_("Cancelled"), "muted"),
    },
    "admin": {
        AdminStatus.UP: (_("Admin up"), "success"),
        AdminStatus.DOWN: (_("Admin down"), "muted"),
        AdminStatus.TESTING: (_("Admin testing"), "warning"),
    },
    "oper": {
        OperStatus.UP: (_("Up"), "success"),
        OperStatus.DOWN: (_("Down"), "danger"),
        OperStatus.UNKNOWN: (_("Unknown"), "muted"),
    },
    "check": {
        CheckState.OK.value: (_("In order"), "success"),
        CheckState.BROKEN.value: (_("Look here"), "danger"),
        CheckState.UNKNOWN.value: (_("Not known"), "muted"),
    },
    "in_sync": {
        True: (_("As ordered"), "success"),
        False: NOT_AS_ORDERED,
    },
}

ACTIONS: dict[str, Promise] = {
    OrderAction.ADD: _("Add"),
    OrderAction.MODIFY: _("Change"),
    OrderAction.DELETE: _("Remove"),
    OrderAction.TEST: _("Test"),
}


@register.filter
def changes(order: Order) -> str:
    """Return the kinds of changes of a modify order, such as ``bandwidth, VLAN``; "" for other orders."""
    return ", ".join(str(kind.label) for kind in change_kinds(order))


def _look(name: str, value: Any) -> tuple[str | Promise, str]:
    """Return the label and tone of a stored value.

    If only a newer release knows the value, the label is the value.
    """
    return LOOKS[name].get(value) or (str(value), "muted")


@register.simple_tag
def fact(name: str, value: Any) -> SafeString:
    """Return the badge of a value. Example: ``{% fact "oper" vll.oper_status %}``."""
    return badge_markup(*_look(name, value))


@register.simple_tag
def status_of_end(end: VllEnd) -> SafeString:
    """Return the badge for the state of an end."""
    return badge_markup(*end_look(end))


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
    label, tone = _look(name, values[name])
    # A suspended line does not forward, so its oper status is shown without colour.
    stopped = name == "oper" and vll.admin_status == AdminStatus.DOWN
    return badge_markup(label, "muted" if stopped else tone)


@register.simple_tag
def link_state(is_up: bool | None, *, in_use: bool = True, reporting: bool = True) -> SafeString:
    """Return the badge for the last reported link state of a port.

    ``is_up``: None if the router reported no state. ``in_use``: whether the state matters to the line. If it
    does not matter, as for a suspended line, the badge has no colour. ``reporting``: whether the router
    reports now.
    """
    if not reporting:
        return badge_markup(_("link unknown"), "muted")
    if is_up is None:
        return badge_markup(_("link not reported"), "muted")
    label, tone = (_("link up"), "success") if is_up else (_("link down"), "danger")
    return badge_markup(label, tone if in_use else "muted")


@register.filter
def order_state(value: str) -> str:
    """Return the name of an order state."""
    return str(_look("order", value)[0])


@register.filter
def order_action(value: str) -> str:
    """Return the name of an order action."""
    return str(ACTIONS.get(value, value))


def router_admin_status(router: Router) -> list[tuple[Promise, str]]:
    """Return the label of each state and the tone of its badge, the most serious first.

    The list is empty for a router in service. A router that is drained or declared dead is always under
    maintenance too. In this case the list omits the maintenance.
    """
    in_maintenance = router.maintenance_since and not router.dead_since and not router.drained_since
    states = (
        (router.dead_since, _("Declared dead"), "danger"),
        (router.drained_since, _("Drained"), "warning"),
        (router.locked_since, _("Locked"), "warning"),
        (router.frozen_since, _("Frozen"), "warning"),
        (in_maintenance, _("Under maintenance"), "warning"),
    )
    return [(label, tone) for is_set, label, tone in states if is_set]


@register.simple_tag
def core_meter(use: CoreUse) -> SafeString:
    """Return a meter of the booked CPU cores of a router."""
    booked, bookable = number_text(use.booked_cores), number_text(use.bookable_cores)
    return format_html(
        '<span class="ll-meter"><meter min="0" max="{}" value="{}" aria-label="{}"></meter> {}</span>',
        f"{use.bookable_cores:.3f}",
        f"{use.booked_cores:.3f}",
        _("Cores booked"),
        _("%(percent)s %%: %(booked)s of %(all)s")
        % {"percent": use.percent, "booked": booked, "all": bookable},
    )


@register.simple_tag
def router_admin_status_badges(router: Router) -> SafeString:
    """Return the badges of the states that the NOC has set for a router; "" for a router in service."""
    return format_html_join(" ", "{}", ((badge_markup(*each),) for each in router_admin_status(router)))
