"""The outcome of a line test in words."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.core.units import grouped_text
from portal.vll.line_test_procedure import SIZES
from portal.vll.models import LineTest

_REASONS = {
    LineTest.Reason.NOTHING_ARRIVES: gettext_noop(
        "No test frame arrives at the other end: the underlay does not carry this tunnel."
    ),
    LineTest.Reason.LARGE_FRAMES_LOST: gettext_noop(
        "Frames of {small} bytes pass, those of {frame} do not; the largest that passed had {passed}: a link"
        " on this path carries less than it says ({links})."
    ),
    LineTest.Reason.FRAMES_LOST: gettext_noop("Test frames are lost on the way, small ones too."),
    LineTest.Reason.NO_TUNNEL: gettext_noop("Both ends are on one router, and there is no tunnel."),
    LineTest.Reason.ROUTER_CANNOT: gettext_noop(
        "{routers} cannot send test frames, which takes VPP 25.02 and an agent of this release."
    ),
    LineTest.Reason.CALLED_OFF: gettext_noop("It was called off."),
    LineTest.Reason.TOOK_TOO_LONG: gettext_noop(
        "The test could not be carried out within a minute, so the line was joined again without one."
    ),
    LineTest.Reason.NOT_BEGUN: gettext_noop("It could not begin at its time. {refusal}"),
}


def line_test_sentence(test: LineTest) -> str:
    """For a reader; frames in bytes, without FCS."""
    if test.state == LineTest.State.WAITING:
        return _("Being tested")
    if test.state == LineTest.State.SCHEDULED:
        return _("To be tested at {at:%Y-%m-%d %H:%M} UTC").format(at=test.scheduled_for)
    if not test.reason:
        return _("All test frames of up to {frame} bytes arrived, both ways.").format(
            frame=_bytes(test.frame)
        )
    links = test.conditions.get("path", {}).get("links", ())
    return _(_REASONS[LineTest.Reason(test.reason)]).format(
        frame=_bytes(test.frame),
        small=_bytes(_largest_standard_size(test)),
        passed=_bytes(test.largest_passed),
        links=", ".join(each["link"] for each in links if not each["backup"]) or _("none is known"),
        routers=", ".join(test.routers),
        refusal=test.conditions.get("refusal", ""),
    )


def _largest_standard_size(test: LineTest) -> int | None:
    """Of the sizes that every line is tested with, the largest that passed."""
    passed = [size for size in SIZES if size <= (test.largest_passed or 0)]
    return max(passed, default=test.largest_passed)


def _bytes(size: int | None) -> str:
    return "" if size is None else grouped_text(size)
