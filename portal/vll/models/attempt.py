from django.db import models

from portal.inventory.models import Router


class Attempt(models.Model):
    """One try to converge a router: append-only evidence (a trigger refuses changes)."""

    class Outcome(models.TextChoices):
        ANSWERED = "answered"
        REFUSED = "refused"
        UNREACHABLE = "unreachable"

    router = models.ForeignKey(Router, on_delete=models.PROTECT, related_name="attempts")
    generation = models.BigIntegerField()
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField()
    outcome = models.CharField(max_length=15, choices=Outcome)
    intent_sha256 = models.CharField(max_length=64)
    # The agent's answer or problem document, whole; or {"error": "..."} when there was none.
    answer = models.JSONField()

    class Meta:
        indexes = [models.Index(fields=["router", "-id"], name="attempt_by_router")]

    def __str__(self) -> str:
        return f"{self.router} generation {self.generation}: {self.outcome}"


class RouterConvergence(models.Model):
    """Who is at work on a router, and when it may be tried again: one apply per router is in flight."""

    router = models.OneToOneField(Router, on_delete=models.CASCADE, related_name="convergence")
    claimed_until = models.DateTimeField(null=True)
    claim = models.UUIDField(null=True)
    failures = models.PositiveIntegerField(default=0)
    retry_at = models.DateTimeField(null=True)
    last_error = models.TextField(blank=True)
    last_answered_at = models.DateTimeField(null=True)
    # The router is to be asked although no order wants anything of it; until it has answered.
    ask_anew = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"{self.router}: {self.failures} failures"
