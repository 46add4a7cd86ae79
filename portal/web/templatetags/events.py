"""Events as sentences of a timeline."""

from django import template
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.events.models import Event
from portal.web.templatetags.facts import ACTIONS

register = template.Library()

_SENTENCES = {
    "order.acknowledged": gettext_noop("Order accepted"),
    "order.held": gettext_noop("Order held for approval"),
    "order.inProgress": gettext_noop("Provisioning began"),
    "order.pendingCancellation": gettext_noop("Cancellation asked for"),
    "order.completed": gettext_noop("Order completed"),
    "order.failed": gettext_noop("Order failed"),
    "order.rejected": gettext_noop("Order rejected"),
    "order.cancelled": gettext_noop("Order cancelled"),
    "order.overdue": gettext_noop("The order takes too long; the NOC is told"),
    "vll.active": gettext_noop("In service"),
    "vll.suspended": gettext_noop("Suspended"),
    "vll.pendingTerminate": gettext_noop("Waiting for removal"),
    "vll.terminated": gettext_noop("Removed from both routers; its leases are given back"),
    "vll.cancelled": gettext_noop("Given up; nothing is left of it"),
    "vll.op-up": gettext_noop("Operationally up"),
    "vll.op-down": gettext_noop("Operationally down"),
    "vll.op-unknown": gettext_noop("Operational status unknown: a router has fallen silent"),
    "vll.in_sync": gettext_noop("The routers hold what is wanted"),
    "vll.not_carried": gettext_noop("The network no longer carries frames of the largest size"),
    "vll.drift": gettext_noop("A router differs from what is wanted"),
    "hold.ordered": gettext_noop("Ordered with a hold"),
    "vll.described": gettext_noop("Description changed"),
}


@register.filter
def sentence(event: Event) -> str:
    """What happened, in words; a kind without words is shown by its name."""
    text = _SENTENCES.get(event.kind)
    if text is None:
        return event.kind
    action = event.data.get("action")
    said = f"{_(text)} ({_(ACTIONS[action]).lower()})" if action in ACTIONS else _(text)
    if passed_over := event.data.get("passed_over"):
        said += ": " + _("{new}, because {old} would be too much for the cores of {routers}").format(
            new=event.data["transport"], old=passed_over, routers=", ".join(event.data["full_routers"])
        )
    return said
