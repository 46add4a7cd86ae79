"""An import: one file of rows of one kind, and what became of each."""

from uuid import uuid4

from django.db import models
from django.db.models import F, Q

from portal.accounts.models import ApiToken, User


class ImportState(models.TextChoices):
    """An import is checked, and then, when somebody says so, taken in; or taken in at once."""

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
    """Counts are of its rows, by their states; ``total`` less all of them are those that nobody looked at."""

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    kind = models.CharField(max_length=20)
    state = models.CharField(max_length=10, choices=ImportState)
    file_name = models.CharField(max_length=100, blank=True)
    asked_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    # The API token that it was sent with, without whose rights it goes no further; null: at the page.
    made_with = models.ForeignKey(ApiToken, on_delete=models.CASCADE, null=True, related_name="+")
    created_at = models.DateTimeField()
    # When somebody said that it is to be taken in, who, and with which API token. From then on it is done as
    # they, with their rights.
    begun_at = models.DateTimeField(null=True)
    begun_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    begun_with = models.ForeignKey(ApiToken, on_delete=models.CASCADE, null=True, related_name="+")
    ended_at = models.DateTimeField(null=True)
    # Who cancelled it; null: nobody did.
    ended_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    # When a batch of it was done last, or it was asked for again since it stood still.
    moved_at = models.DateTimeField()
    # Of the message that has it go on; those of earlier turns do nothing.
    turn = models.PositiveIntegerField(default=0)
    # Rows that begin with "# ", as the templates' examples do.
    remarks = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField()
    new = models.PositiveIntegerField(default=0)
    same = models.PositiveIntegerField(default=0)
    refused = models.PositiveIntegerField(default=0)
    made = models.PositiveIntegerField(default=0)
    # How often in a row a turn was begun, and no batch became whole.
    failures = models.PositiveSmallIntegerField(default=0, db_default=0)
    # Why it was cancelled, where nobody did: {"code", "facts", "sentence"}.
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
        """The rows that the present phase is through with."""
        looked_at = self.same + self.refused + self.made
        return looked_at if self.begun_at else looked_at + self.new

    @property
    def acting(self) -> tuple[User, ApiToken | None]:
        """As whom it is done: who had it begun, and until then who sent it."""
        if self.begun_by is None:
            return self.asked_by, self.made_with
        return self.begun_by, self.begun_with

    @property
    def origin(self) -> str:
        """The request id of all that it does."""
        return f"import-{self.pk}"


class ImportRow(models.Model):
    """A row of the file: ``line`` counts its lines from 1; ``cells`` by column, those that say something."""

    class State(models.TextChoices):
        WAITING = "waiting"
        NEW = "new"
        SAME = "same"
        REFUSED = "refused"
        MADE = "made"

    owner = models.ForeignKey(Import, on_delete=models.CASCADE, related_name="rows", db_index=False)
    line = models.PositiveIntegerField()
    cells = models.JSONField()
    # What stood beyond the last column of the header; such a row is refused.
    surplus = models.JSONField(default=list)
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    # What stands against it: [{"column", "code", "facts", "sentence"}], the sentences in English.
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
