from django.db import models
from django.db.models import Q

from portal.accounts.models import Customer, User

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
