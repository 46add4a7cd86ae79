import uuid
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Q

from portal.accounts.models import User
from portal.alarms.kinds import Kind, Severity, kind_choices


class Alarm(models.Model):
    """One occurrence of a problem: from the time it is raised until its cause is gone.

    Only ``portal.alarms.rounds`` writes rows, from derived conditions. OperatorState has operators' input.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=20, choices=kind_choices)
    # Values as in ``AlarmCondition``. ``object`` is no relation, because the history outlives the object.
    object = models.CharField(max_length=120)
    name = models.CharField(max_length=250)
    facts = models.JSONField(default=dict)
    # The severity of the kind when the alarm was raised.
    severity = models.PositiveSmallIntegerField(choices=Severity)
    routers: Any = ArrayField(models.BigIntegerField(), default=list)
    raised_at = models.DateTimeField()
    cleared_at = models.DateTimeField(null=True)
    # The numbers of affected lines and of their customers; the first lines: [{"line", "name", "customer"},
    # ...].
    lines = models.PositiveIntegerField(default=0)
    customers = models.PositiveIntegerField(default=0)
    first_lines = models.JSONField(default=list)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "object"],
                condition=Q(cleared_at__isnull=True),
                name="an_object_has_one_alarm_of_a_kind_at_a_time",
            ),
            models.CheckConstraint(condition=Q(kind__in=Kind.values), name="an_alarm_is_of_a_known_kind"),
            models.CheckConstraint(
                condition=Q(severity__in=Severity.values), name="an_alarm_has_a_known_severity"
            ),
            models.CheckConstraint(
                condition=Q(cleared_at__isnull=True) | Q(cleared_at__gte=F("raised_at")),
                name="an_alarm_is_cleared_after_it_was_raised",
            ),
        ]
        indexes = [
            models.Index(
                fields=["severity", "raised_at", "id"],
                condition=Q(cleared_at__isnull=True),
                name="alarm_up_by_severity",
            ),
            models.Index(fields=["-raised_at", "-id"], name="alarm_by_age"),
            models.Index(fields=["kind", "-raised_at", "-id"], name="alarm_by_kind"),
            models.Index(fields=["object", "-raised_at"], name="alarm_by_object"),
            GinIndex(fields=["routers"], name="alarm_by_router"),
            models.Index(fields=["cleared_at"], condition=Q(cleared_at__isnull=False), name="alarm_by_end"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()}: {self.name}"


class OperatorState(models.Model):
    """The input of operators about an alarm (RFC 8632, 3.5: the operator state).

    The input ends when the alarm clears. Only a silence lasts until its own time is over: it also applies to
    later alarms of the same kind about the same object.
    """

    alarm = models.OneToOneField(
        Alarm, on_delete=models.CASCADE, primary_key=True, related_name="operator_state"
    )
    acknowledged_by = models.CharField(max_length=150, blank=True, default="")
    acknowledged_at = models.DateTimeField(null=True)
    note = models.CharField(max_length=500, blank=True, default="")
    assigned_to = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    silenced_by = models.CharField(max_length=150, blank=True, default="")
    silenced_until = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(acknowledged_at__isnull=True, acknowledged_by="", note="")
                | Q(acknowledged_at__isnull=False) & ~Q(acknowledged_by=""),
                name="an_acknowledgement_names_who_gave_it",
            ),
            models.CheckConstraint(
                condition=Q(silenced_until__isnull=True, silenced_by="")
                | Q(silenced_until__isnull=False) & ~Q(silenced_by=""),
                name="a_silence_names_who_asked_for_it",
            ),
        ]
        indexes = [
            models.Index(
                fields=["silenced_until"],
                condition=Q(silenced_until__isnull=False),
                name="operator_state_silenced",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.alarm_id}"


class AlarmRound(models.Model):
    """The only row describes the last round: when it ran, and its counts."""

    at = models.DateTimeField()
    # Kinds that could not be checked. Their alarms stayed unchanged.
    unchecked_kinds = models.JSONField(default=list, db_column="unseen")
    # The number of lines in service by health: {"up": 12, ...}.
    lines = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S}"
