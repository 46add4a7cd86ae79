"""Answers that the REST API keeps for requests that are sent again."""

from django.db import models

from portal.accounts.models import User


class KeptAnswer(models.Model):
    """The answer that the first request with an Idempotency-Key got, written with that request's effect.

    It lives here and not in ``portal.events``: status, headers and body are a matter of the API alone.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+", db_index=False)
    key = models.CharField(max_length=255)
    # SHA-256 over method, path and body: the same key with another request is a mistake.
    fingerprint = models.BinaryField(max_length=32)
    status = models.PositiveSmallIntegerField()
    headers = models.JSONField()
    body = models.BinaryField()
    answered_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "key"], name="a_key_has_one_answer_per_user"),
        ]
        indexes = [models.Index(fields=["answered_at"], name="kept_answer_by_age")]

    def __str__(self) -> str:
        return f"{self.key} of {self.user_id}: {self.status}"
