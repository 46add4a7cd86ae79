"""Events as sentences of a timeline."""

from django import template
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.events.models import Event
from portal.vll.line_test_sentences import announced_sentence
from portal.vll.states import OrderAction

register = template.Library()

# What was ordered, behind what became of it.
_IN_BRACKETS = {
    OrderAction.ADD: gettext_noop("add"),
    OrderAction.MODIFY: gettext_noop("modify"),
    OrderAction.DELETE: gettext_noop("remove"),
    OrderAction.TEST: gettext_noop("test"),
}
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
    "order.retry_forced": gettext_noop("The NOC had the routers asked again at once"),
    "order.end_forced": gettext_noop("The NOC ended the order without the routers' word"),
    "vll.active": gettext_noop("In service"),
    "vll.suspended": gettext_noop("Suspended"),
    "vll.pendingTerminate": gettext_noop("Waiting for removal"),
    "vll.terminated": gettext_noop("Removed from both routers; its leases are given back"),
    "vll.cancelled": gettext_noop("Given up; nothing is left of it"),
    "vll.op-up": gettext_noop("Operationally up"),
    "vll.op-down": gettext_noop("Operationally down"),
    "vll.op-unknown": gettext_noop("Operational status unknown: a router does not tell"),
    "vll.in_sync": gettext_noop("The routers hold what is wanted"),
    "vll.not_carried": gettext_noop("The network no longer carries frames of the largest size"),
    "vll.black_hole": gettext_noop("Large frames are lost on the way between the routers"),
    "vll.black_hole_gone": gettext_noop("Large frames pass between the routers again"),
    "vll.drift": gettext_noop("A router differs from what is wanted"),
    "vll.vlan_restored": gettext_noop(
        "Frames with the line's VLAN come in again, which somebody had stopped"
    ),
    "trouble.reported": gettext_noop("The NOC was told of trouble"),
    "trouble.closed": gettext_noop("The NOC closed the report of trouble"),
    "line_test.scheduled": gettext_noop("A test with frames is scheduled"),
    "line_test.passed": gettext_noop("Tested with frames"),
    "line_test.failed": gettext_noop("Tested with frames, which were lost"),
    "line_test.not_tested": gettext_noop("Not tested with frames"),
    "hold.ordered": gettext_noop("Ordered with a hold"),
    "router.maintenance_began": gettext_noop("Maintenance began"),
    "router.maintenance_ended": gettext_noop("Maintenance ended"),
    "router.drain_began": gettext_noop("Drain began: paths avoid it"),
    "router.drain_ended": gettext_noop("Drain ended"),
    "router.declared_dead": gettext_noop("Declared dead: removals do not wait for it"),
    "router.declared_alive": gettext_noop("No longer declared dead; it catches up"),
    "router.held": gettext_noop("Held: nothing is sent to it"),
    "router.released": gettext_noop("Released; it catches up"),
    "router.retried": gettext_noop("Asked to be tried again"),
    "router.calibration_taken": gettext_noop("Admission goes by what a calibration measured"),
    "router.calibration_returned": gettext_noop("Admission goes by the shipped table again"),
    "router.reconcile_asked": gettext_noop("Asked to be reconciled"),
    "router.reconciled": gettext_noop("Reconciled: the database counts on from what the agent holds"),
    "router.retired": gettext_noop("Retired"),
    "router.enrolment_offered": gettext_noop("Enrolment token made"),
    "router.enrolled": gettext_noop("Enrolled from its own machine"),
    "router.certificate_registered": gettext_noop("Certificate registered"),
    "router.certificate_revoked": gettext_noop("Certificate revoked"),
    "router.black_hole": gettext_noop("A path from here loses large packets, and small ones not"),
    "router.black_hole_gone": gettext_noop("Large packets pass again on a path from here"),
    "router.vpp.connected": gettext_noop("The agent reached VPP"),
    "router.vpp.lost": gettext_noop("The agent lost VPP"),
    "router.interface.up": gettext_noop("An interface has link"),
    "router.interface.down": gettext_noop("An interface has lost its link"),
    "router.end.conflict": gettext_noop("An end met something that is not ours"),
    "router.end.conflict_cleared": gettext_noop("What stood in an end's way is gone"),
    "router.end.drift": gettext_noop("An end was found changed by other hands"),
    "router.end.contested": gettext_noop("Somebody else changes an end again after each repair"),
    "router.end.contested_cleared": gettext_noop("Nobody else has changed that end for an hour"),
    "router.end.vlan_restored": gettext_noop(
        "An end's sub-interface was made anew: a refused duplicate of its VLAN had stopped what comes in"
    ),
    "router.end.quarantined": gettext_noop("An end that nobody wants was left alone"),
    "router.intent.applied": gettext_noop("An intent is applied"),
    "router.behind_agent": gettext_noop("The agent holds a newer intent than the database"),
    "router.samples_accepted": gettext_noop("Quarantined samples were accepted"),
    "router.samples_discarded": gettext_noop("Quarantined samples were discarded"),
    "router.samples_expired": gettext_noop("Quarantined samples were given up: nobody decided in time"),
    "vll.month_corrected": gettext_noop("The 95th percentiles of a frozen month were corrected"),
    "vll.described": gettext_noop("Description changed"),
}


@register.filter
def sentence(event: Event) -> str:
    """The event in words; a kind without words is shown by its name."""
    text = _SENTENCES.get(event.kind)
    if text is None:
        return event.kind
    action = event.data.get("action")
    said = f"{_(text)} ({_(_IN_BRACKETS[action])})" if action in _IN_BRACKETS else _(text)
    if reason := announced_sentence(event.kind, event.data):
        said += f": {reason}"
    if month := event.data.get("month"):
        said += f" ({month})"
    if passed_over := event.data.get("passed_over"):
        said += ": " + _("{new}, because {old} would be too much for the cores of {routers}").format(
            new=event.data["transport"], old=passed_over, routers=", ".join(event.data["full_routers"])
        )
    return said
