"""One run with NetBox: read its objects, import changes, and export lines."""

import logging
from collections.abc import Iterable
from datetime import datetime

from portal.core import clock
from portal.netbox_sync.client import Client
from portal.netbox_sync.configuration import Configuration, configuration
from portal.netbox_sync.errors import NetboxError
from portal.netbox_sync.import_apply import Applier, local_inventory
from portal.netbox_sync.import_diff import GONE, Difference, differences
from portal.netbox_sync.import_mapping import Finding, wanted
from portal.netbox_sync.l2vpn_proposals import l2vpns_refresh
from portal.netbox_sync.line_export import Exporter, lines_due, lines_to_check
from portal.netbox_sync.models import NetboxRun
from portal.netbox_sync.netbox_reader import Progress, read
from portal.netbox_sync.run_queue import Claim, ClaimLost, Report, claim, next_run, runs_abandoned_end, state

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
        runs_abandoned_end(now=now)
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
        report.finish(difference=difference, error=error.record)
        raise
    report.finish(difference=difference)


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
