import uuid
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from portal.accounts.models import ApiToken, Customer, User
from portal.core.db.row_conditions import TenantQuerySet

# The kind of monthly reports. Other mails have the kind of their event.
MONTHLY_REPORT = "monthly_report"


class Group(models.TextChoices):
    """The groups of mails that users can enable and disable."""

    ORDERS = "orders"
    FAILURES = "failures"
    LINES = "lines"
    STATUS = "status"
    REPORTS = "reports"
    WEBHOOKS = "webhooks"
    NOC = "noc"


class MailOptOut(models.Model):
    """A record that a user has disabled the mails of a group. Without a record the mails are enabled."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="mail_opt_outs", db_index=False)
    group = models.CharField(max_length=10, choices=Group)
    since = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "group"], name="a_group_is_opted_out_of_once"),
            models.CheckConstraint(
                condition=Q(group__in=Group.values),
                name="what_is_opted_out_of_is_a_known_group",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} without {self.group}"


class Mail(models.Model):
    """A mail to one user about an event, lines with the same cause, or a month.

    The text is composed when the mail is sent.
    """

    class State(models.TextChoices):
        PENDING = "pending"
        SENT = "sent"
        # Not sent, because later events made it unnecessary or the reader no longer wants it.
        DROPPED = "dropped"
        FAILED = "failed"

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="mails", db_index=False)
    # None for mails that do not concern a single customer.
    customer = models.ForeignKey(Customer, on_delete=models.CASCADE, null=True, related_name="mails")
    # Empty for mails about the reader's own account or a webhook's URL. Nobody can disable these mails.
    group = models.CharField(max_length=10, choices=Group, blank=True)
    # The kind of the event; MONTHLY_REPORT for a report.
    kind = models.CharField(max_length=64)
    event_id = models.BigIntegerField(null=True)
    month = models.DateField(null=True)
    vll_id = models.UUIDField(null=True)
    order_id = models.UUIDField(null=True)
    # The cause of a mail about lines or a router (portal.notifications.line_fault_causes).
    cause = models.CharField(max_length=100, blank=True, default="", db_default="")
    data = models.JSONField(default=dict)
    created_at = models.DateTimeField()
    state = models.CharField(max_length=10, choices=State, default=State.PENDING)
    tries = models.PositiveSmallIntegerField(default=0)
    # The time of the next attempt; null if the mail is not pending.
    next_try_at = models.DateTimeField(null=True)
    # The end of a sender's claim to this mail.
    sending_until = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)
    # The last error of an attempt to send the mail.
    error = models.CharField(max_length=300, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "event_id"], name="a_reader_hears_of_an_event_once"),
            models.UniqueConstraint(
                fields=["user", "customer", "month"], name="a_reader_gets_a_months_report_once"
            ),
            models.CheckConstraint(
                condition=Q(event_id__isnull=False, month__isnull=True)
                | Q(event_id__isnull=True, month__isnull=False),
                name="a_mail_is_about_an_event_or_a_month",
            ),
            models.CheckConstraint(
                condition=Q(state="pending", next_try_at__isnull=False)
                | (~Q(state="pending") & Q(next_try_at__isnull=True)),
                name="only_a_pending_mail_is_sent",
            ),
        ]
        indexes = [
            models.Index(fields=["next_try_at"], condition=Q(next_try_at__isnull=False), name="mail_to_send"),
            # For the query of a reader's mails with a cause.
            models.Index(fields=["user", "cause"], condition=~Q(cause=""), name="mail_by_cause"),
            models.Index(fields=["created_at"], name="mail_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} to {self.user_id}: {self.state}"


class MailLine(models.Model):
    """A line in a mail, and the status of the line that the mail reports."""

    class Status(models.TextChoices):
        DOWN = "down"
        UP = "up"
        DRIFT = "drift"
        # A router of the line does not report.
        SILENT = "silent"
        # The path loses its large frames.
        BLACK_HOLE = "black_hole"

    mail = models.ForeignKey(Mail, on_delete=models.CASCADE, related_name="lines", db_index=False)
    vll_id = models.UUIDField()
    event_id = models.BigIntegerField()
    status = models.CharField(max_length=10, choices=Status, db_column="said")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["mail", "vll_id"], name="a_mail_names_a_line_once"),
            models.CheckConstraint(
                condition=Q(status__in=["down", "up", "drift", "silent", "black_hole"]),
                name="what_is_said_of_a_line_is_known",
            ),
        ]
        # For the query of the status that a reader last got for a line.
        indexes = [models.Index(fields=["vll_id", "-event_id"], name="mail_line_by_vll")]

    def __str__(self) -> str:
        return f"{self.vll_id}: {self.status}"


class ReportedMonth(models.Model):
    """A calendar month (UTC) whose reports have been created, so that they are not created twice."""

    month = models.DateField(unique=True)
    made_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.month:%Y-%m}"


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

    # The base of the header webhook-id, equal in all attempts, so that receivers can detect repetitions.
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
        """The value of the header webhook-id. It has no full stop, which separates the signed parts."""
        return f"msg_{self.id.hex}"
