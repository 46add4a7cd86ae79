from django.db import models
from django.db.models import Q

from portal.vll.models.vll import Vll


class ForwardedLinkLoss(models.Model):
    """Which end's link a line wants down, because the other end has lost its own.

    One row for each line that has ever forwarded one, so that never both of its ends are kept down
    (portal.vll.link_loss_decision).
    """

    vll = models.OneToOneField(
        Vll, on_delete=models.CASCADE, primary_key=True, related_name="forwarded_link_loss"
    )
    # "a" or "z"; "" for neither, as it was before and after.
    held = models.CharField(max_length=1, blank=True)
    turned_at = models.DateTimeField()
    # How often an end was taken down in a row, without an hour of rest in between.
    times = models.PositiveIntegerField(default=0)
    # When the end's router was last asked to make it so.
    asked_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(held__in=["", "a", "z"]), name="an_end_held_down_is_a_or_z"),
        ]

    def __str__(self) -> str:
        return f"{self.vll_id} {self.held or 'neither'}"
