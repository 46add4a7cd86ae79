"""Synchronizations with NetBox (runs): the queue, the lock that lets only one worker use NetBox, and one run.

Users and NetBox's webhook request runs. A run reads NetBox's objects, imports changes, and exports lines. It
stores its progress and its result. After a failure, the next attempt waits.
"""

import logging
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from time import monotonic
from typing import Any
from uuid import UUID, uuid4

from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet

from portal.accounts import permissions
from portal.accounts.models import User
from portal.celery_tasks import SYNC_NETBOX
from portal.core import clock
from portal.core.background_work import backoff
from portal.events.task_requests import send_task
from portal.netbox_sync.client import Client, Configuration, configuration
from portal.netbox_sync.errors import Failure, NetboxError
from portal.netbox_sync.import_changes import GONE, Applier, Difference, differences, local_inventory
from portal.netbox_sync.import_mapping import Finding, wanted
from portal.netbox_sync.l2vpn_proposals import l2vpns_refresh
from portal.netbox_sync.line_export import Exporter, lines_due, lines_to_check
from portal.netbox_sync.models import NetboxRun, NetboxState
from portal.netbox_sync.netbox_reader import Progress, read

# The duration of a claim. It must be longer than a response may take (NETBOX_TOTAL_S). Each step of a run
# extends the claim.
CLAIM = timedelta(seconds=180)
FIRST_RETRY = timedelta(seconds=15)
LONGEST_RETRY = timedelta(minutes=15)


def state() -> NetboxState:
    """Return the only row of NetboxState. Create it if it does not exist."""
    found, _ = NetboxState.objects.get_or_create(pk=1)
    return found


@dataclass(frozen=True, slots=True)
class Claim:
    """The right of one worker to use NetBox."""

    token: UUID

    def extend(self) -> None:
        """Extend the claim. Raises ClaimLost if another worker has taken over after the claim expired."""
        if not self._mine().update(claimed_until=clock.now() + CLAIM):
            raise ClaimLost

    def release(self) -> None:
        """Release the claim, so that another worker may use NetBox."""
        self._mine().update(claim=None, claimed_until=None)

    def note(self, **changes: object) -> None:
        """Change fields of NetboxState. Has no effect if another worker has taken over."""
        self._mine().update(**changes)

    def failed(self, error: NetboxError) -> None:
        """Record a failure, and the pause before the next attempt.

        The pause doubles with each failure. If NetBox's response contained a pause, that pause is used.
        """
        row, now = state(), clock.now()
        wait = backoff(row.failures, first=FIRST_RETRY, longest=LONGEST_RETRY)
        if error.retry_after_s is not None:
            wait = timedelta(seconds=error.retry_after_s)
        self.note(
            failures=F("failures") + 1,
            retry_at=now + wait,
            failing_since=row.failing_since or now,
            error=error.record,
        )

    def succeeded(self) -> None:
        """Record that NetBox responds and accepts writes: the failure is over."""
        self.note(failures=0, retry_at=None, failing_since=None, error=None)

    def _mine(self) -> "QuerySet[NetboxState]":
        return NetboxState.objects.filter(pk=1, claim=self.token)


class ClaimLost(Exception):
    """The claim has expired, and another worker has taken over."""


def claim(now: datetime) -> Claim | None:
    """Return a new claim; None while another worker has a claim that has not expired."""
    state()
    free = Q(claimed_until=None) | Q(claimed_until__lte=now)
    token = uuid4()
    if NetboxState.objects.filter(free, pk=1).update(claim=token, claimed_until=now + CLAIM):
        return Claim(token)
    return None


# The maximum number of changes, and of findings, that are stored per run. The stored counts include the rows
# that are not stored.
KEPT_ROWS = 500
KEPT_RUNS = 100
_EVERY_S = 1.0


@transaction.atomic
def run_request(*, dry: bool, requester: str, now: datetime) -> None:
    """Request a run. If a request of the same kind (dry or not) already waits, do not store another."""
    try:
        with transaction.atomic():
            NetboxRun.objects.create(
                why=NetboxRun.Why.PERSON, requested_by=requester, requested_at=now, dry=dry
            )
    except IntegrityError:
        return
    send_task(SYNC_NETBOX)


@transaction.atomic
def change_announced(*, now: datetime) -> None:
    """Record that NetBox announced a change, and send a task for an import.

    For further announcements before that import begins, send no task.
    """
    state()
    row = NetboxState.objects.select_for_update().get(pk=1)
    NetboxState.objects.filter(pk=1).update(wanted_at=now)
    if not row.change_waits:
        send_task(SYNC_NETBOX)


def next_run(configuration: Configuration, *, now: datetime) -> NetboxRun | None:
    """Return the run to make now; None if no run is due.

    Requested runs come first, oldest first. If its requester has lost the permission, a request fails.

    If there is no request, a run is due in these cases:

    * NetBox has announced a change.
    * The schedule requires a run.
    * The last run failed.

    After a failure, a run without a request waits until the pause is over.
    """
    for requested in NetboxRun.objects.filter(started_at=None, finished_at=None).order_by("id"):
        person = User.objects.filter(username=requested.requested_by).first()
        if not requested.requested_by or (person and permissions.may_remove_from_the_network(person)):
            return requested
        NetboxRun.objects.filter(pk=requested.pk).update(
            finished_at=now, error=Failure("not_allowed", person=requested.requested_by).record
        )
    row, before = state(), now - timedelta(seconds=configuration.sync_every_s)
    if not row.may_be_tried(now):
        return None
    why = None
    if row.change_waits:
        why = NetboxRun.Why.WEBHOOK
    elif row.tried_at is None or row.failures or row.tried_at <= before:
        why = NetboxRun.Why.SCHEDULE
    if why is None:
        return None
    return NetboxRun(why=why, requested_at=now, dry=not configuration.apply)


class Report:
    """The row of a run while it is in progress. It stores progress once a second, and then the result."""

    def __init__(self, run: NetboxRun, claim: Claim) -> None:
        self.run, self._claim, self._next = run, claim, 0.0
        run.started_at = clock.now()
        run.save()

    def progress(self, phase: str, done: int, total: int | None) -> None:
        """Store the progress and extend the claim. Raises ClaimLost."""
        if phase == self.run.phase and monotonic() < self._next:
            return
        self._next = monotonic() + _EVERY_S
        self._claim.extend()
        self.run.phase, self.run.done, self.run.total = phase, done, total
        self.run.save(update_fields=["phase", "done", "total"])

    def finish(self, difference: Difference, error: dict[str, Any] | None = None) -> None:
        """Store the result: the first changes and findings, their total numbers, and the error."""
        written, found = difference.written, difference.findings
        counts: dict[str, int] = {"changes": len(written), "findings": len(found)}
        for change in written:
            counts[change.kind] = counts.get(change.kind, 0) + 1
        self.run.changes = [difference.record(change) for change in written[:KEPT_ROWS]]
        self.run.findings = [asdict(finding) for finding in found[:KEPT_ROWS]]
        self.run.counts, self.run.error = {**self.run.counts, **counts}, error
        self.run.finished_at, self.run.phase = clock.now(), ""
        self.run.save()
        _forget_old()


def stale_after(configuration: Configuration) -> timedelta:
    """Return the age from which the last import is stale: two intervals plus one minute."""
    return timedelta(seconds=2 * configuration.sync_every_s + 60)


def _forget_old() -> None:
    oldest = NetboxRun.objects.order_by("-id").values_list("id", flat=True)[KEPT_RUNS : KEPT_RUNS + 1]
    for first in oldest:
        NetboxRun.objects.filter(id__lte=first).delete()


log = logging.getLogger(__name__)


def sync_due(*, now: datetime) -> None:
    """Make the run that is due. If none is due, export the lines that are due.

    Does nothing while another worker uses NetBox. Failures of NetBox are recorded and not raised. Such
    failures never delay orders, and the next call continues the work.
    """
    at = configuration()
    if at is None:
        return
    mine = claim(now)
    if mine is None:
        return
    try:
        # The workers of runs that have begun were killed: only the worker with the claim can make a run.
        begun = NetboxRun.objects.filter(started_at__isnull=False, finished_at=None)
        begun.update(finished_at=now, error=Failure("cut_off").record, phase="")
        run = next_run(at, now=now)
        if run is not None:
            run_make(run, at, mine)
        elif state().may_be_tried(now) and lines_due().exists():
            _export(Client(at), at, mine, whole=False, progress=lambda *_: mine.extend())
    except NetboxError as error:
        log.warning("NetBox: %s %s", error.code, error.facts)
        mine.failed(error)
    except ClaimLost:
        log.warning("NetBox: another worker has taken over")
    finally:
        mine.release()


def run_make(run: NetboxRun, at: Configuration, mine: Claim) -> None:
    """Make a run: import, and export of all lines. Record its progress and result.

    A dry run makes no changes in the portal. A dry run that a user requested does not export lines either.
    Raises NetboxError, after it is recorded, or ClaimLost.
    """
    report = Report(run, mine)
    mine.note(tried_at=report.run.started_at)
    difference = Difference()
    try:
        client = Client(at)
        difference = _checked_difference(client, at, report.progress)
        if not run.dry:
            _apply(difference, run, report.progress)
        mine.note(release=client.release, imported_at=run.started_at)
        l2vpns_refresh(client)
        if not (run.dry and run.why == NetboxRun.Why.PERSON):
            _export(client, at, mine, whole=True, progress=report.progress)
    except NetboxError as error:
        report.finish(difference, error.record)
        raise
    report.finish(difference)


def difference_with_netbox(at: Configuration, progress: Progress) -> Difference:
    """Return the changes that an import would make, without storing anything. Raises NetboxError."""
    return _checked_difference(Client(at), at, progress)


def _checked_difference(client: Client, at: Configuration, progress: Progress) -> Difference:
    """Read NetBox, and compare its inventory with the portal's.

    If an object is missing and the last complete run has not reported it as missing, NetBox is read a second
    time. The object is reported as missing only if neither read found it. One read can miss an object while a
    user edits its status, a tag or a cable.
    """
    found = differences(wanted(read(client, at, progress), at), local_inventory())
    if not _missing(found.findings) - _reported_missing():
        return found
    again = differences(wanted(read(client, at, progress), at), local_inventory())
    twice = _missing(found.findings) & _missing(again.findings)
    again.findings = [each for each in again.findings if each.code != GONE or _key(each) in twice]
    return again


def _missing(findings: Iterable[Finding]) -> set[tuple[str, str]]:
    return {_key(each) for each in findings if each.code == GONE}


def _key(finding: Finding) -> tuple[str, str]:
    return finding.facts["what"], finding.subject


def _reported_missing() -> set[tuple[str, str]]:
    """Return the missing objects that the last complete run reported. They need no second read."""
    last = (
        NetboxRun.objects.filter(finished_at__isnull=False, error__isnull=True)
        .order_by("-finished_at")
        .first()
    )
    kept = [] if last is None else last.findings
    return {(each["facts"]["what"], each["subject"]) for each in kept if each["code"] == GONE}


def _apply(difference: Difference, run: NetboxRun, progress: Progress) -> None:
    applier, total = Applier(actor=run.requested_by, now=clock.now()), len(difference.changes)
    done = []
    for number, change in enumerate(difference.changes, start=1):
        progress("changes", number, total)
        if finding := applier.apply(change):
            difference.findings.append(finding)
        else:
            done.append(change)
    difference.changes = done


def _export(client: Client, at: Configuration, mine: Claim, *, whole: bool, progress: Progress) -> None:
    now = clock.now()
    Exporter(client, at, now=now).export(lines_to_check() if whole else lines_due(), progress)
    mine.succeeded()
    mine.note(release=client.release, **({"exported_at": now} if whole else {}))
