"""A template filter that returns events as sentences, for timelines."""

from django import template
from django.utils.translation import gettext_lazy as _

from portal.core.reader_texts import stored_text_shown
from portal.events.models import Event
from portal.vll.sentences import announced_sentence
from portal.vll.states import OrderAction

register = template.Library()

# The action of an order, in brackets after the sentence.
_IN_BRACKETS = {
    OrderAction.ADD: _("add"),
    OrderAction.MODIFY: _("modify"),
    OrderAction.DELETE: _("remove"),
    OrderAction.TEST: _("test"),
}
_SENTENCES = {
    "order.acknowledged": _("Order accepted"),
    "order.held": _("Order pending approval"),
    "order.inProgress": _("Provisioning started"),
    "order.pendingCancellation": _("Cancellation requested"),
    "order.completed": _("Order completed"),
    "order.failed": _("Order failed"),
    "order.rejected": _("Order rejected"),
    "order.cancelled": _("Order cancelled"),
    "order.overdue": _("The order is taking too long; the NOC has been notified"),
    "order.retry_forced": _("The NOC requested an immediate retry on the routers"),
    "order.end_forced": _("The NOC ended the order without the routers' confirmation"),
    "vll.active": _("In service"),
    "vll.suspended": _("Suspended"),
    "vll.pendingTerminate": _("Waiting for removal"),
    "vll.terminated": _("Removed from both routers; its leases are released"),
    "vll.cancelled": _("Abandoned; its configuration is removed from all routers"),
    "vll.op-up": _("Line up"),
    "vll.op-down": _("Line down"),
    "vll.op-unknown": _("Status unknown: a router is not reporting"),
    "vll.in_sync": _("The routers are configured as ordered"),
    "vll.not_carried": _("The network no longer carries frames of the largest size everywhere"),
    "vll.carried": _("The network carries frames of the largest size everywhere again"),
    "vll.black_hole": _("Large frames are lost between the routers"),
    "vll.black_hole_gone": _("Large frames get through between the routers again"),
    "vll.drift": _("A router is not configured as it should be"),
    "vll.vlan_rebuilt": _(
        "An end was set up again because its router dropped the line's frames; frames were lost for a moment"
    ),
    "vll.vlan_restored": _("Frames with the line's VLAN arrive again; somebody had blocked them"),
    "vll.link_loss_forwarded": _("Link loss forwarded"),
    "vll.link_loss_over": _("Link loss is over"),
    "trouble.reported": _("Trouble was reported to the NOC"),
    "trouble.closed": _("The NOC closed the trouble report"),
    "line_test.scheduled": _("An activation test is scheduled"),
    "line_test.passed": _("Activation test passed"),
    "line_test.failed": _("Activation test failed: frames were lost"),
    "line_test.not_tested": _("No activation test was made"),
    "hold.made": _("Resources reserved for an order"),
    "hold.renewed": _("Reservation renewed"),
    "hold.released": _("Reservation released"),
    "hold.expired": _("Reservation expired"),
    "hold.ordered": _("Ordered with a reservation"),
    "router.maintenance_began": _("Maintenance started"),
    "router.maintenance_ended": _("Maintenance ended"),
    "router.drain_began": _("Drain started: paths avoid it"),
    "router.drain_ended": _("Drain ended"),
    "router.declared_dead": _("Declared dead: removals do not wait for it"),
    "router.declared_alive": _("No longer declared dead; it catches up"),
    "router.held": _("Locked: nothing is sent to it"),
    "router.released": _("Released; it catches up"),
    "router.frozen": _("Frozen: nothing is changed on it"),
    "router.freeze_ended": _("Freeze ended"),
    "router.freeze_looked": _("Somebody reviewed the changes during the freeze; the router catches up"),
    "router.rebuild_requested": _("An operator requested to create a sub-interface again"),
    "router.rebuild_failed": _("The agent refused to create a sub-interface again"),
    "router.retried": _("Retry requested"),
    "router.calibration_taken": _("Admission uses the figures of a calibration"),
    "router.calibration_returned": _("Admission uses the default table again"),
    "router.reconcile_asked": _("Reconciliation requested"),
    "router.reconciled": _("Reconciled: the database continues from the agent's stored intent"),
    "router.retired": _("Retired"),
    "router.created": _("Added to the inventory"),
    "router.changed": _("Changed in the inventory"),
    "router.removed": _("Removed from the inventory"),
    "router.silent": _("Reports stopped"),
    "router.reporting": _("Reports arrive again"),
    "link.created": _("A backbone link was added"),
    "link.changed": _("A backbone link was changed"),
    "link.removed": _("A backbone link was removed"),
    "port.created": _("A port was added"),
    "port.changed": _("A port was changed"),
    "port.removed": _("A port was removed"),
    "port.retired": _("A port was retired"),
    "router.enrolment_offered": _("Enrolment token created"),
    "router.enrolled": _("Enrolled from the router itself"),
    "router.certificate_registered": _("Certificate registered"),
    "router.certificate_revoked": _("Certificate revoked"),
    "router.certificate_renewed": _("Certificate renewed"),
    "router.black_hole": _("A path from here loses large packets, but not small ones"),
    "router.black_hole_gone": _("Large packets get through on a path from here again"),
    "router.vpp.connected": _("The agent connected to VPP"),
    "router.vpp.lost": _("The agent lost its connection to VPP"),
    "router.interface.up": _("An interface has a link"),
    "router.interface.down": _("An interface has lost its link"),
    "router.end.conflict": _("An end conflicts with a foreign object"),
    "router.end.conflict_cleared": _("The object that conflicted with an end is gone"),
    "router.end.drift": _("An end was changed by somebody else"),
    "router.end.contested": _("Somebody else keeps changing an end after each repair"),
    "router.end.contested_cleared": _("Nobody else has changed that end for an hour"),
    "router.end.vlan_rebuilt": _("An end's sub-interface was deleted and created again"),
    "router.end.vlan_restored": _(
        "Frames arrive again at an end whose VLAN VPP had lost, since its sub-interface was created again"
    ),
    "router.end.vlan_not_restored": _(
        "An end's sub-interface was created again, and no frame has arrived since"
    ),
    "router.end.quarantined": _("An end that is no longer wanted was not removed"),
    "router.intent.applied": _("Configuration applied"),
    "router.behind_agent": _("The agent has a newer intent than the database"),
    "router.samples_by_own_clock": _(
        "Samples from before a restart have the times of the router's own clock"
    ),
    "router.samples_accepted": _("Quarantined samples were accepted"),
    "router.samples_discarded": _("Quarantined samples were discarded"),
    "router.samples_expired": _("Quarantined samples expired: nobody decided in time"),
    "vll.month_corrected": _("The 95th percentiles of a final month were corrected"),
    "vll.described": _("Description changed"),
}
_OTHER = _("Something else happened")


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
    shown = f"{text} ({_IN_BRACKETS[action]})" if action in _IN_BRACKETS else str(text)
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
