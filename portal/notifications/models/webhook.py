import uuid
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from portal.accounts.models import ApiToken, Customer
from portal.core.db.tenant_scope import TenantQuerySet


class Webhook(models.Model):
    """A URL that gets the events of a customer's lines and orders.

    A webhook without a customer belongs to the NOC and gets the events of all customers. Secrets are
    encrypted and not hashed, because the portal needs them to sign deliveries
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
    # The selected public types (portal.notifications.event_catalogue). Empty selects all types, including
    # types that are added later.
    types: Any = ArrayField(models.CharField(max_length=50), default=list, blank=True)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=150)
    # The API token that created the webhook; null if it was created on a page.
    made_with = models.ForeignKey(
        ApiToken, on_delete=models.SET_NULL, null=True, blank=True, related_name="webhooks"
    )
    secret = models.TextField()
    secret_set_at = models.DateTimeField()
    # After a change of the secret, deliveries are also signed with the previous secret until
    # ``previous_until``.
    previous_secret = models.TextField(blank=True)
    previous_until = models.DateTimeField(null=True)
    disabled_at = models.DateTimeField(null=True)
    disabled_because = models.CharField(max_length=10, choices=Disabled, blank=True)

    # The number of failed attempts since the last success, and the time of the first failure.
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True)
    # No attempt is made before this time. The pause limits the attempts to a receiver that does not respond,
    # regardless of the number of pending deliveries.
    paused_until = models.DateTimeField(null=True, db_column="resting_until")
    # A task for the webhook has been sent. If it has not begun by this time, it counts as lost.
    called_until = models.DateTimeField(null=True)
    # The worker that is sending, and the end of its claim. A webhook gets one request at a time.
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
    """An event to send to a webhook: the exact body, and the log of the attempts."""

    class State(models.TextChoices):
        PENDING = "pending"
        DELIVERED = "delivered"
        FAILED = "failed"

    class Error(models.TextChoices):
        """The reasons for the failure of an attempt."""

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

    # The base of the header webhook-id, which is the same in each attempt, so that a receiver can detect
    # repetitions.
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries", db_index=False)
    # None for a test.
    event_id = models.BigIntegerField(null=True)
    type = models.CharField(max_length=50)
    body = models.TextField()
    created_at = models.DateTimeField()
    state = models.CharField(max_length=10, choices=State, default=State.PENDING)
    # The number of attempts since the delivery was created, or since a user last requested it again.
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
        """Whether the delivery waits for its first attempt after its creation or a user's request."""
        return self.state == self.State.PENDING and self.tries == 0

    @property
    def customer(self) -> Customer | None:
        return self.webhook.customer

    @property
    def message_id(self) -> str:
        """The value of the header webhook-id. It contains no full stop, because a full stop separates the
        signed parts.
        """
        return f"msg_{self.id.hex}"
