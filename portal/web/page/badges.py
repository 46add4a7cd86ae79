"""Badges: the label and colour of each state, as HTML and as template tags."""

from typing import Any

from django import template
from django.utils.functional import Promise
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

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


# The label of each value, and the tone of its badge.
LOOKS: dict[str, dict[Any, tuple[str, str]]] = {
    "order": {
        OrderState.ACKNOWLEDGED: (gettext_noop("Acknowledged"), "info"),
        OrderState.PENDING_APPROVAL: (gettext_noop("Pending approval"), "warning"),
        OrderState.IN_PROGRESS: (gettext_noop("In progress"), "info"),
        OrderState.PENDING_CANCELLATION: (gettext_noop("Cancelling"), "warning"),
        OrderState.COMPLETED: (gettext_noop("Completed"), "success"),
        OrderState.FAILED: (gettext_noop("Failed"), "danger"),
        OrderState.REJECTED: (gettext_noop("Rejected"), "danger"),
        OrderState.CANCELLED: (gettext_noop("Cancelled"), "muted"),
    },
    "lifecycle": {
        Lifecycle.PENDING_ACTIVE: (gettext_noop("Pending active"), "info"),
        Lifecycle.ACTIVE: (gettext_noop("Active"), "success"),
        Lifecycle.SUSPENDED: (gettext_noop("Suspended"), "warning"),
        Lifecycle.PENDING_TERMINATE: (gettext_noop("Pending terminate"), "warning"),
        Lifecycle.TERMINATED: (gettext_noop("Terminated"), "muted"),
        Lifecycle.CANCELLED: (gettext_noop("Cancelled"), "muted"),
    },
    "admin": {
        AdminStatus.UP: (gettext_noop("Admin up"), "success"),
        AdminStatus.DOWN: (gettext_noop("Admin down"), "muted"),
        AdminStatus.TESTING: (gettext_noop("Admin testing"), "warning"),
    },
    "oper": {
        OperStatus.UP: (gettext_noop("Up"), "success"),
        OperStatus.DOWN: (gettext_noop("Down"), "danger"),
        OperStatus.UNKNOWN: (gettext_noop("Unknown"), "muted"),
    },
    "check": {
        CheckState.OK.value: (gettext_noop("In order"), "success"),
        CheckState.BROKEN.value: (gettext_noop("Look here"), "danger"),
        CheckState.UNKNOWN.value: (gettext_noop("Not known"), "muted"),
    },
    "in_sync": {
        True: (gettext_noop("As ordered"), "success"),
        False: NOT_AS_ORDERED,
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


def _look(name: str, value: Any) -> tuple[str, str]:
    """Return the label and tone of a stored value.

    If only a newer release knows the value, the label is the value.
    """
    return LOOKS[name].get(value) or (str(value), "muted")


@register.simple_tag
def fact(name: str, value: Any) -> SafeString:
    """Return the badge of a value. Example: ``{% fact "oper" vll.oper_status %}``."""
    label, tone = _look(name, value)
    return badge_markup(_(label), tone)


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
    label, tone = _look(name, values[name])
    # A suspended line does not forward, so its oper status is shown without colour.
    stopped = name == "oper" and vll.admin_status == AdminStatus.DOWN
    return badge_markup(_(label), "muted" if stopped else tone)


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
    return _(_look("order", value)[0])


@register.filter
def order_action(value: str) -> str:
    """Return the name of an order action."""
    return _(ACTIONS[value]) if value in ACTIONS else value


def router_admin_status(router: Router) -> list[tuple[Promise, str]]:
    """Return the label of each state and the tone of its badge, the most serious first.

    The list is empty for a router in service. A router that is drained or declared dead is always under
    maintenance too. In this case the list omits the maintenance.
    """
    states: list[tuple[Promise, str]] = []
    if router.dead_since is not None:
        states.append((gettext_lazy("Declared dead"), "danger"))
    if router.drained_since is not None:
        states.append((gettext_lazy("Drained"), "warning"))
    if router.locked_since is not None:
        states.append((gettext_lazy("Locked"), "warning"))
    if router.frozen_since is not None:
        states.append((gettext_lazy("Frozen"), "warning"))
    if router.maintenance_since is not None and router.dead_since is None and router.drained_since is None:
        states.append((gettext_lazy("Under maintenance"), "warning"))
    return states


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
