from django.db import models
from django.db.models import Q

from portal.vll.models.vll import Vll


class ForwardedLinkLoss(models.Model):
    """The end whose port is shut down, because the line's other end has lost its link.

    Each line that has ever forwarded a link loss has one row. One row per line ensures that the portal never
    shuts down both ends (portal.vll.link_loss_decision).
    """

    vll = models.OneToOneField(
        Vll, on_delete=models.CASCADE, primary_key=True, related_name="forwarded_link_loss"
    )
    # "a" or "z"; "" when no end is shut down.
    shut_side = models.CharField(db_column="held", max_length=1, blank=True)
    turned_at = models.DateTimeField()
    # The number of shutdowns in a row. After an hour without a shutdown, it begins again at 1.
    times = models.PositiveIntegerField(default=0)
    # When the portal last sent this state to the end's router.
    sent_at = models.DateTimeField(db_column="asked_at")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(shut_side__in=["", "a", "z"]), name="an_end_held_down_is_a_or_z"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.vll_id} {self.shut_side or 'neither'}"
