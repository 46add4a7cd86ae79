"""Error messages about graphs, and about decisions on quarantined samples."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.core.errors import TEXTS, wording
from portal.telemetry.sample_quarantine_decisions import DecidedOtherwise, TimeUnknown
from portal.telemetry.throughput import RangeEmpty, StepRefused

TEXTS[RangeEmpty] = gettext_noop("The range ends before it begins. Choose a `to` that is later than `from`.")
TEXTS[TimeUnknown] = gettext_noop(
    "It is not known when these samples were counted, so they cannot be added. Discard them."
)


@wording.register
def _step_refused(error: StepRefused) -> str:
    return _(
        "A step of {step} s is not available or gives more than {points} points. Choose from: {offered}."
    ).format(step=error.step_s, points=error.maximum_points, offered=", ".join(map(str, error.offered_s)))


_DECIDED = {
    "accepted": gettext_noop(
        "These samples have already been accepted and counted. They cannot be removed again."
    ),
    "discarded": gettext_noop("These samples have already been discarded and deleted."),
    "expired": gettext_noop("Nobody decided on these samples in time; they were deleted."),
}


@wording.register
def _decided_otherwise(error: DecidedOtherwise) -> str:
    return _(_DECIDED[error.state])
