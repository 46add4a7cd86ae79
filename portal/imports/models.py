"""An import: one file with rows of one kind, and the result of each row."""

from uuid import uuid4

from django.db import models
from django.db.models import F, Q

from portal.accounts.models import ApiToken, User


class ImportState(models.TextChoices):
    """The state of an import. The rows are checked; after a confirmation, they are imported.

    An import without a dry run is not checked first: it is imported immediately.
    """

    CHECKING = "checking"
    CHECKED = "checked"
    IMPORTING = "importing"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


TRANSITIONS: dict[str, frozenset[str]] = {
    ImportState.CHECKING: frozenset({ImportState.CHECKED, ImportState.CANCELLED}),
    ImportState.CHECKED: frozenset({ImportState.IMPORTING, ImportState.CANCELLED}),
    ImportState.IMPORTING: frozenset({ImportState.COMPLETED, ImportState.CANCELLED}),
    ImportState.COMPLETED: frozenset(),
    ImportState.CANCELLED: frozenset(),
}
RUNNING = (ImportState.CHECKING, ImportState.IMPORTING)


class Import(models.Model):
    """One import. ``new``, ``same``, ``refused`` and ``made`` are the numbers of rows in each state.

    ``total`` minus their sum is the number of unchecked rows.
    """

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    kind = models.CharField(max_length=20)
    state = models.CharField(max_length=10, choices=ImportState)
    file_name = models.CharField(max_length=100, blank=True)
    requested_by = models.ForeignKey(
        User, on_delete=models.PROTECT, related_name="+", db_column="asked_by_id"
    )
    # The API token of the upload; null for an upload on the page. The import needs the rights of the token.
    made_with = models.ForeignKey(ApiToken, on_delete=models.CASCADE, null=True, related_name="+")
    created_at = models.DateTimeField()
    # The time of the confirmation, and the user and API token that confirmed. After the confirmation, the
    # import has the rights of this user.
    begun_at = models.DateTimeField(null=True)
    begun_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    begun_with = models.ForeignKey(ApiToken, on_delete=models.CASCADE, null=True, related_name="+")
    ended_at = models.DateTimeField(null=True)
    # The user who cancelled the import; null if no user did.
    ended_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    # The time of the last batch, or the time when the import was queued again after it had stalled.
    moved_at = models.DateTimeField()
    # The number of the current turn. A message with an earlier number does nothing.
    turn = models.PositiveIntegerField(default=0)
    # The number of rows that begin with "# ", such as the examples in templates.
    remarks = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField()
    new = models.PositiveIntegerField(default=0)
    same = models.PositiveIntegerField(default=0)
    refused = models.PositiveIntegerField(default=0)
    made = models.PositiveIntegerField(default=0)
    # The number of consecutive attempts without a completed batch.
    failures = models.PositiveSmallIntegerField(default=0, db_default=0)
    # Why the portal cancelled the import: {"code", "facts", "sentence"}; null if it did not cancel it.
    stopped_by = models.JSONField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(total__gte=F("new") + F("same") + F("refused") + F("made")),
                name="an_import_counts_no_row_twice",
            ),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=False, state__in=["completed", "cancelled"])
                | Q(ended_at__isnull=True, state__in=["checking", "checked", "importing"]),
                name="an_import_has_ended_when_it_is_over",
            ),
            models.CheckConstraint(
                condition=Q(begun_at__isnull=False, begun_by__isnull=False)
                | Q(begun_at__isnull=True, begun_by__isnull=True, begun_with__isnull=True),
                name="an_import_is_begun_by_somebody",
            ),
            models.CheckConstraint(
                condition=Q(ended_by__isnull=True) | Q(state="cancelled", stopped_by__isnull=True),
                name="an_import_that_somebody_ended_is_cancelled",
            ),
        ]
        indexes = [
            models.Index(fields=["-created_at", "-id"], name="imports_newest_first"),
            models.Index(
                fields=["created_at", "id"],
                condition=Q(state__in=["checking", "importing"]),
                name="imports_that_run",
            ),
        ]

    def __str__(self) -> str:
        return f"import {self.pk}"

    @property
    def is_running(self) -> bool:
        return self.state in RUNNING

    @property
    def done(self) -> int:
        """The number of rows that are finished in the present phase (check or import)."""
        checked = self.same + self.refused + self.made
        return checked if self.begun_at else checked + self.new

    @property
    def acting(self) -> tuple[User, ApiToken | None]:
        """The user and the token whose rights apply: after the confirmation, the user who confirmed; before
        it, the uploader.
        """
        if self.begun_by is None:
            return self.requested_by, self.made_with
        return self.begun_by, self.begun_with

    @property
    def origin(self) -> str:
        """The request id of all actions of this import."""
        return f"import-{self.pk}"


class ImportRow(models.Model):
    """A row of the file. ``line`` is its line number, from 1. ``cells`` has the non-empty cells by column."""

    class State(models.TextChoices):
        WAITING = "waiting"
        NEW = "new"
        SAME = "same"
        REFUSED = "refused"
        MADE = "made"

    owner = models.ForeignKey(Import, on_delete=models.CASCADE, related_name="rows", db_index=False)
    line = models.PositiveIntegerField()
    cells = models.JSONField()
    # The cells after the last column of the header. A row with such cells is refused.
    surplus = models.JSONField(default=list)
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    # The reasons: [{"column", "code", "facts", "sentence"}], with sentences in English.
    refusals = models.JSONField(default=list)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "line"], name="a_line_of_a_file_is_one_row"),
            models.CheckConstraint(
                condition=Q(state__in=["waiting", "new", "same", "made"], refusals=[])
                | (Q(state="refused") & ~Q(refusals=[])),
                name="a_refused_row_says_why",
            ),
        ]
        indexes = [
            models.Index(
                fields=["owner", "line"],
                condition=Q(state__in=["waiting", "new"]),
                name="import_rows_to_do",
            ),
            models.Index(fields=["owner", "line"], condition=Q(state="refused"), name="import_rows_refused"),
        ]

    def __str__(self) -> str:
        return f"line {self.line} of {self.owner_id}"
