"""Labels of a router's answers about an end, and the tones of their badges."""

from django.utils.translation import gettext_noop

from portal.vll.models import VllEnd

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
