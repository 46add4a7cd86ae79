from django.db import models
from django.db.models import Q

from portal.accounts.models import Customer, User

# The kind of a mail about a month; other mails have the kind of their event.
MONTHLY_REPORT = "monthly_report"


class Group(models.TextChoices):
    """The groups of mails that users choose."""

    ORDERS = "orders"
    FAILURES = "failures"
    LINES = "lines"
    STATUS = "status"
    REPORTS = "reports"
    WEBHOOKS = "webhooks"
    NOC = "noc"


class MailOptOut(models.Model):
    """A user who does not want the mails of a group. Without a row they are wanted."""

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
    """A mail to one reader about an event, lines of one cause, or a month; its text is written when it is
    sent.
    """

    class State(models.TextChoices):
        PENDING = "pending"
        SENT = "sent"
        # Replaced by later events, or no longer wanted.
        DROPPED = "dropped"
        FAILED = "failed"

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="mails", db_index=False)
    # None: a mail of the NOC or of the portal.
    customer = models.ForeignKey(Customer, on_delete=models.CASCADE, null=True, related_name="mails")
    # Empty: about the reader's own account or the address of a webhook; nobody can opt out of these.
    group = models.CharField(max_length=10, choices=Group, blank=True)
    # The kind of the event; "monthly_report" for a month.
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
    # The time of the next attempt, unless the mail was sent.
    next_try_at = models.DateTimeField(null=True)
    # A sender has claimed the mail until then.
    sending_until = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)
    # The last response of the mail server that refused the mail.
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
            # For mails of a cause that a reader got, or that are pending.
            models.Index(fields=["user", "cause"], condition=~Q(cause=""), name="mail_by_cause"),
            models.Index(fields=["created_at"], name="mail_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} to {self.user_id}: {self.state}"


class MailLine(models.Model):
    """A line that a mail is about, and the status that the mail reports."""

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
        # For the status of a line that a reader last got.
        indexes = [models.Index(fields=["vll_id", "-event_id"], name="mail_line_by_vll")]

    def __str__(self) -> str:
        return f"{self.vll_id}: {self.status}"


class ReportedMonth(models.Model):
    """A calendar month (UTC) with reports; each is made once."""

    month = models.DateField(unique=True)
    made_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.month:%Y-%m}"
