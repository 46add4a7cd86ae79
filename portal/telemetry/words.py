"""The words for refused graphs."""

from django.utils.translation import gettext as _

from portal.telemetry.queries import RangeEmpty, StepRefused
from portal.vll.words import sentence


@sentence.register
def _range_empty(error: RangeEmpty) -> str:
    return _("The range ends before it begins. Write a `to` that is later than `from`.")


@sentence.register
def _step_refused(error: StepRefused) -> str:
    return _(
        "A step of {step} s is not offered or draws more than {points} points. Choose from: {offered}."
    ).format(step=error.step_s, points=error.maximum_points, offered=", ".join(map(str, error.offered_s)))
