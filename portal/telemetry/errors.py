"""Errors about graphs."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from portal.core.errors import DomainError


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
