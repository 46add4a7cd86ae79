"""Stored responses of the REST API. A client that repeats a request gets the stored response."""

from django.db import models

from portal.accounts.models import User


class KeptAnswer(models.Model):
    """The response to the first request with an Idempotency-Key.

    The response is stored in the same transaction as the effect of the request. The model is not in
    ``portal.events``, because only the API needs status, headers and body.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+", db_index=False)
    key = models.CharField(max_length=255)
    # SHA-256 of method, path, query, content type and body. Other requests with the key are refused.
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
