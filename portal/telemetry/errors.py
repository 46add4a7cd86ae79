"""Errors about graphs, and about decisions on quarantined samples."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from portal.core.errors import Conflict, DomainError


class RangeEmpty(DomainError):
    """The range ends before it begins."""

    text = gettext_lazy("The range ends before it begins. Choose a `to` that is later than `from`.")
    field: str = "to"


class StepRefused(DomainError):
    """The step is not offered, gives too many points, or has no stored values for this time. In seconds."""

    step_s: int
    offered_s: tuple[int, ...]
    maximum_points: int
    field: str = "step"

    @property
    def sentence(self) -> str:
        return _(
            "A step of {step} s is not available or gives more than {points} points. Choose from: {offered}."
        ).format(step=self.step_s, points=self.maximum_points, offered=", ".join(map(str, self.offered_s)))


class TimeUnknown(Conflict):
    """Nobody knows when the samples were counted, so they can only be discarded."""

    text = gettext_lazy(
        "It is not known when these samples were counted, so they cannot be added. Discard them."
    )
    reason: str


_DECIDED = {
    "accepted": gettext_noop(
        "These samples have already been accepted and counted. They cannot be removed again."
    ),
    "discarded": gettext_noop("These samples have already been discarded and deleted."),
    "expired": gettext_noop("Nobody decided on these samples in time; they were deleted."),
}


class DecidedOtherwise(Conflict):
    """The quarantine was already accepted or discarded, or has expired without a decision."""

    state: str

    @property
    def sentence(self) -> str:
        return _(_DECIDED[self.state])
