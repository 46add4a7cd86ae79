"""The outcome of a line test in words."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.vll.models import LineTest

_REASONS = {
    LineTest.Reason.NOTHING_ARRIVES: gettext_noop(
        "No test frame arrives at the other end: the underlay does not carry this tunnel."
    ),
    LineTest.Reason.LARGE_FRAMES_LOST: gettext_noop(
        "{passed} bytes pass, {frame} do not: a link on this path carries less than it says."
    ),
    LineTest.Reason.FRAMES_LOST: gettext_noop("Test frames are lost on the way, small ones too."),
    LineTest.Reason.NO_TUNNEL: gettext_noop("Both ends are on one router, and there is no tunnel."),
    LineTest.Reason.ROUTER_CANNOT: gettext_noop(
        "{routers} cannot send test frames, which takes VPP 25.02 and an agent of this release."
    ),
    LineTest.Reason.CALLED_OFF: gettext_noop("The order ended before."),
}


def line_test_sentence(test: LineTest) -> str:
    """Of a test that has ended, for a reader; frames in bytes, without FCS."""
    if not test.reason:
        return _("All test frames of up to {frame} bytes arrived, both ways.").format(frame=test.frame)
    return _(_REASONS[LineTest.Reason(test.reason)]).format(
        frame=test.frame, passed=test.largest_passed, routers=", ".join(test.routers)
    )
