import uuid
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from portal.accounts.models import ApiToken, Customer
from portal.core.tenant_scope import TenantQuerySet


class Webhook(models.Model):
    """A URL that gets the events of a customer's lines and orders. Without a customer it is the NOC's own and
    gets all events.

    The secrets sign deliveries, so the portal must read them: they are encrypted
    (portal.accounts.secret_encryption).
    """

    class Disabled(models.TextChoices):
        """The reasons for disabling a webhook."""

        NO = ""
        BY_HAND = "byHand"
        GONE = "gone"
        FAILING = "failing"

    customer = models.ForeignKey(Customer, on_delete=models.CASCADE, null=True, related_name="webhooks")
    url = models.CharField(max_length=500)
    description = models.CharField(max_length=100, blank=True)
    # Public types (portal.notifications.event_catalogue); empty: all of them, also those added later.
    types: Any = ArrayField(models.CharField(max_length=50), default=list, blank=True)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=150)
    # The API token that made the webhook; null: made on a page.
    made_with = models.ForeignKey(
        ApiToken, on_delete=models.SET_NULL, null=True, blank=True, related_name="webhooks"
    )
    secret = models.TextField()
    secret_set_at = models.DateTimeField()
    # Signs together with the new secret until then, so that the receiver can change over.
    previous_secret = models.TextField(blank=True)
    previous_until = models.DateTimeField(null=True)
    disabled_at = models.DateTimeField(null=True)
    disabled_because = models.CharField(max_length=10, choices=Disabled, blank=True)

    # The failed attempts since the last success, and the time of the first of them.
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True)
    # No attempt before then: an address that does not respond is rarely tried, however much waits for it.
    paused_until = models.DateTimeField(null=True, db_column="resting_until")
    # A message about the webhook is on its way; it counts as lost after that time.
    called_until = models.DateTimeField(null=True)
    # The worker that sends, and the end of its claim: one request at a time.
    claim = models.UUIDField(null=True)
    claimed_until = models.DateTimeField(null=True)

    objects = TenantQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(disabled_because__in=["", "byHand", "gone", "failing"]),
                name="a_webhook_is_disabled_for_a_known_reason",
            ),
            models.CheckConstraint(
                condition=Q(disabled_at__isnull=True, disabled_because="")
                | (Q(disabled_at__isnull=False) & ~Q(disabled_because="")),
                name="a_disabled_webhook_says_why",
            ),
            models.CheckConstraint(
                condition=Q(previous_until__isnull=True, previous_secret="")
                | (Q(previous_until__isnull=False) & ~Q(previous_secret="")),
                name="a_previous_secret_ends",
            ),
        ]

    def __str__(self) -> str:
        return self.description or self.url


class WebhookRelatedQuerySet(TenantQuerySet):
    customer_path = "webhook__customer"


class Delivery(models.Model):
    """One event for one webhook: the exact body, and the log of the attempts."""

    class State(models.TextChoices):
        PENDING = "pending"
        DELIVERED = "delivered"
        FAILED = "failed"

    class Error(models.TextChoices):
        """The reasons why an attempt failed."""

        NONE = ""
        STATUS = "status"
        REDIRECT = "redirect"
        GONE = "gone"
        TIMEOUT = "timeout"
        UNREACHABLE = "unreachable"
        NO_SUCH_HOST = "noSuchHost"
        NOT_PUBLIC = "notPublic"
        PORT = "port"
        PLAIN_HTTP = "plainHttp"
        TLS = "tls"
        NOT_HTTP = "notHttp"

    # Sent as webhook-id, the same with each attempt: a receiver recognises repetitions by it.
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries", db_index=False)
    # None for a test.
    event_id = models.BigIntegerField(null=True)
    type = models.CharField(max_length=50)
    body = models.TextField()
    created_at = models.DateTimeField()
    state = models.CharField(max_length=10, choices=State, default=State.PENDING)
    # Attempts since it was made or last sent again by hand.
    tries = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True)
    # The newest attempts, oldest first: {"at", "status", "error", "took_ms"}.
    log = models.JSONField(default=list)
    # The beginning of the response to the last attempt.
    answer = models.TextField(blank=True)

    objects = WebhookRelatedQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["webhook", "event_id"], name="a_webhook_hears_of_an_event_once"),
            models.CheckConstraint(
                condition=Q(state__in=["pending", "delivered", "failed"]),
                name="delivery_state_is_a_known_state",
            ),
            models.CheckConstraint(
                condition=Q(state="pending", next_try_at__isnull=False)
                | (~Q(state="pending") & Q(next_try_at__isnull=True)),
                name="only_a_pending_delivery_is_tried",
            ),
        ]
        indexes = [
            models.Index(
                fields=["webhook", "next_try_at", "created_at"],
                condition=Q(next_try_at__isnull=False),
                name="delivery_due",
            ),
            models.Index(fields=["webhook", "-created_at", "-id"], name="delivery_by_webhook"),
            models.Index(fields=["created_at"], name="delivery_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.type} to {self.webhook_id}: {self.state}"

    @property
    def is_new(self) -> bool:
        """Return whether it has not been tried since it was made or last sent again by hand."""
        return self.state == self.State.PENDING and self.tries == 0

    @property
    def customer(self) -> Customer | None:
        return self.webhook.customer

    @property
    def message_id(self) -> str:
        """Return the webhook-id header, without a full stop, which separates the signed parts."""
        return f"msg_{self.id.hex}"
