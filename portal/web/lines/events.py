"""A template filter that returns events as sentences, for timelines."""

from django import template
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.core.reader_texts import stored_text_shown
from portal.events.models import Event
from portal.vll.sentences import announced_sentence
from portal.vll.states import OrderAction

register = template.Library()

# The action of an order, in brackets after the sentence.
_IN_BRACKETS = {
    OrderAction.ADD: gettext_noop("add"),
    OrderAction.MODIFY: gettext_noop("modify"),
    OrderAction.DELETE: gettext_noop("remove"),
    OrderAction.TEST: gettext_noop("test"),
}
_SENTENCES = {
    "order.acknowledged": gettext_noop("Order accepted"),
    "order.held": gettext_noop("Order pending approval"),
    "order.inProgress": gettext_noop("Provisioning started"),
    "order.pendingCancellation": gettext_noop("Cancellation requested"),
    "order.completed": gettext_noop("Order completed"),
    "order.failed": gettext_noop("Order failed"),
    "order.rejected": gettext_noop("Order rejected"),
    "order.cancelled": gettext_noop("Order cancelled"),
    "order.overdue": gettext_noop("The order is taking too long; the NOC has been notified"),
    "order.retry_forced": gettext_noop("The NOC requested an immediate retry on the routers"),
    "order.end_forced": gettext_noop("The NOC ended the order without the routers' confirmation"),
    "vll.active": gettext_noop("In service"),
    "vll.suspended": gettext_noop("Suspended"),
    "vll.pendingTerminate": gettext_noop("Waiting for removal"),
    "vll.terminated": gettext_noop("Removed from both routers; its leases are released"),
    "vll.cancelled": gettext_noop("Abandoned; its configuration is removed from all routers"),
    "vll.op-up": gettext_noop("Line up"),
    "vll.op-down": gettext_noop("Line down"),
    "vll.op-unknown": gettext_noop("Status unknown: a router is not reporting"),
    "vll.in_sync": gettext_noop("The routers are configured as ordered"),
    "vll.not_carried": gettext_noop("The network no longer carries frames of the largest size everywhere"),
    "vll.carried": gettext_noop("The network carries frames of the largest size everywhere again"),
    "vll.black_hole": gettext_noop("Large frames are lost between the routers"),
    "vll.black_hole_gone": gettext_noop("Large frames get through between the routers again"),
    "vll.drift": gettext_noop("A router is not configured as it should be"),
    "vll.vlan_rebuilt": gettext_noop(
        "An end was set up again because its router dropped the line's frames; frames were lost for a moment"
    ),
    "vll.vlan_restored": gettext_noop("Frames with the line's VLAN arrive again; somebody had blocked them"),
    "vll.link_loss_forwarded": gettext_noop("Link loss forwarded"),
    "vll.link_loss_over": gettext_noop("Link loss is over"),
    "trouble.reported": gettext_noop("Trouble was reported to the NOC"),
    "trouble.closed": gettext_noop("The NOC closed the trouble report"),
    "line_test.scheduled": gettext_noop("An activation test is scheduled"),
    "line_test.passed": gettext_noop("Activation test passed"),
    "line_test.failed": gettext_noop("Activation test failed: frames were lost"),
    "line_test.not_tested": gettext_noop("No activation test was made"),
    "hold.made": gettext_noop("Resources reserved for an order"),
    "hold.renewed": gettext_noop("Reservation renewed"),
    "hold.released": gettext_noop("Reservation released"),
    "hold.expired": gettext_noop("Reservation expired"),
    "hold.ordered": gettext_noop("Ordered with a reservation"),
    "router.maintenance_began": gettext_noop("Maintenance started"),
    "router.maintenance_ended": gettext_noop("Maintenance ended"),
    "router.drain_began": gettext_noop("Drain started: paths avoid it"),
    "router.drain_ended": gettext_noop("Drain ended"),
    "router.declared_dead": gettext_noop("Declared dead: removals do not wait for it"),
    "router.declared_alive": gettext_noop("No longer declared dead; it catches up"),
    "router.held": gettext_noop("Locked: nothing is sent to it"),
    "router.released": gettext_noop("Released; it catches up"),
    "router.frozen": gettext_noop("Frozen: nothing is changed on it"),
    "router.freeze_ended": gettext_noop("Freeze ended"),
    "router.freeze_looked": gettext_noop(
        "Somebody reviewed the changes during the freeze; the router catches up"
    ),
    "router.rebuild_requested": gettext_noop("An operator requested to create a sub-interface again"),
    "router.rebuild_failed": gettext_noop("The agent refused to create a sub-interface again"),
    "router.retried": gettext_noop("Retry requested"),
    "router.calibration_taken": gettext_noop("Admission uses the figures of a calibration"),
    "router.calibration_returned": gettext_noop("Admission uses the default table again"),
    "router.reconcile_asked": gettext_noop("Reconciliation requested"),
    "router.reconciled": gettext_noop("Reconciled: the database continues from the agent's stored intent"),
    "router.retired": gettext_noop("Retired"),
    "router.created": gettext_noop("Added to the inventory"),
    "router.changed": gettext_noop("Changed in the inventory"),
    "router.removed": gettext_noop("Removed from the inventory"),
    "router.silent": gettext_noop("Reports stopped"),
    "router.reporting": gettext_noop("Reports arrive again"),
    "link.created": gettext_noop("A backbone link was added"),
    "link.changed": gettext_noop("A backbone link was changed"),
    "link.removed": gettext_noop("A backbone link was removed"),
    "port.created": gettext_noop("A port was added"),
    "port.changed": gettext_noop("A port was changed"),
    "port.removed": gettext_noop("A port was removed"),
    "port.retired": gettext_noop("A port was retired"),
    "router.enrolment_offered": gettext_noop("Enrolment token created"),
    "router.enrolled": gettext_noop("Enrolled from the router itself"),
    "router.certificate_registered": gettext_noop("Certificate registered"),
    "router.certificate_revoked": gettext_noop("Certificate revoked"),
    "router.certificate_renewed": gettext_noop("Certificate renewed"),
    "router.black_hole": gettext_noop("A path from here loses large packets, but not small ones"),
    "router.black_hole_gone": gettext_noop("Large packets get through on a path from here again"),
    "router.vpp.connected": gettext_noop("The agent connected to VPP"),
    "router.vpp.lost": gettext_noop("The agent lost its connection to VPP"),
    "router.interface.up": gettext_noop("An interface has a link"),
    "router.interface.down": gettext_noop("An interface has lost its link"),
    "router.end.conflict": gettext_noop("An end conflicts with a foreign object"),
    "router.end.conflict_cleared": gettext_noop("The object that conflicted with an end is gone"),
    "router.end.drift": gettext_noop("An end was changed by somebody else"),
    "router.end.contested": gettext_noop("Somebody else keeps changing an end after each repair"),
    "router.end.contested_cleared": gettext_noop("Nobody else has changed that end for an hour"),
    "router.end.vlan_rebuilt": gettext_noop("An end's sub-interface was deleted and created again"),
    "router.end.vlan_restored": gettext_noop(
        "Frames arrive again at an end whose VLAN VPP had lost, since its sub-interface was created again"
    ),
    "router.end.vlan_not_restored": gettext_noop(
        "An end's sub-interface was created again, and no frame has arrived since"
    ),
    "router.end.quarantined": gettext_noop("An end that is no longer wanted was not removed"),
    "router.intent.applied": gettext_noop("Configuration applied"),
    "router.behind_agent": gettext_noop("The agent has a newer intent than the database"),
    "router.samples_by_own_clock": gettext_noop(
        "Samples from before a restart have the times of the router's own clock"
    ),
    "router.samples_accepted": gettext_noop("Quarantined samples were accepted"),
    "router.samples_discarded": gettext_noop("Quarantined samples were discarded"),
    "router.samples_expired": gettext_noop("Quarantined samples expired: nobody decided in time"),
    "vll.month_corrected": gettext_noop("The 95th percentiles of a final month were corrected"),
    "vll.described": gettext_noop("Description changed"),
}


_OTHER = gettext_noop("Something else happened")


def _link_loss(event: Event) -> str:
    """Return the port that is shut or restored by link loss forwarding, and the reason."""
    text = _("{port} is being brought up again")
    if event.kind == "vll.link_loss_forwarded":
        text = _("{port} is being taken down, because {lost_at} has lost its link")
        if event.data["router_dead"]:
            text = _("{port} is being taken down, because the router of {lost_at} is out of service")
    return text.format(port=event.data["port"], lost_at=event.data["lost_at"])


@register.filter
def sentence(event: Event) -> str:
    """Return the sentence of an event. A test finds kinds of events without a sentence."""
    text = _SENTENCES.get(event.kind, _OTHER)
    action = event.data.get("action")
    shown = f"{_(text)} ({_(_IN_BRACKETS[action])})" if action in _IN_BRACKETS else _(text)
    if reason := announced_sentence(event.kind, event.data):
        shown += f": {stored_text_shown(reason)}"
    if "lost_at" in event.data:
        shown += f": {_link_loss(event)}"
    if month := event.data.get("month"):
        shown += f" ({month})"
    if passed_over := event.data.get("passed_over"):
        shown += ": " + _("{new}, because {old} would be too much for the cores of {routers}").format(
            new=event.data["transport"], old=passed_over, routers=", ".join(event.data["full_routers"])
        )
    return shown
