"""The command ``netbox_sync``: synchronize with NetBox now, or show the changes that this sync would make."""

import getpass
from argparse import ArgumentParser
from dataclasses import asdict
from time import monotonic
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.core import clock
from portal.netbox_sync import netbox_status
from portal.netbox_sync.client import configuration
from portal.netbox_sync.errors import NetboxError
from portal.netbox_sync.import_changes import Difference
from portal.netbox_sync.models import NetboxRun
from portal.netbox_sync.sync_run import claim, difference_with_netbox, run_make

_EVERY_S = 2.0


class Command(BaseCommand):
    help = "Imports changes from NetBox and exports lines to it. With --dry-run: only show the changes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only show the changes")

    def handle(self, *args: Any, **options: Any) -> None:
        at = configuration()
        if at is None:
            raise CommandError("NETBOX_URL is not set")
        self._shown_at = monotonic()
        try:
            if options["dry_run"]:
                self._show(difference_with_netbox(at, self._progress))
            else:
                self._run(at)
        except NetboxError as error:
            raise CommandError(netbox_status.error_sentence(error.record)) from error

    def _run(self, at: Any) -> None:
        mine = claim(clock.now())
        if mine is None:
            raise CommandError("another run is in progress; the page NetBox shows it")
        now, requester = clock.now(), getpass.getuser()
        run = NetboxRun(why=NetboxRun.Why.PERSON, requested_by=requester, requested_at=now)
        try:
            run_make(run, at, mine)
        except NetboxError as error:
            mine.failed(error)
            raise
        finally:
            mine.release()
        self._print(run.changes, run.findings)
        self.stdout.write(f"{run.counts['changes']} changes, {run.counts['findings']} findings")

    def _show(self, difference: Difference) -> None:
        changes = [difference.record(change) for change in difference.written]
        findings = [asdict(finding) for finding in difference.findings]
        self._print(changes, findings)
        self.stdout.write(f"{len(changes)} changes, {len(findings)} findings; nothing was changed")

    def _print(self, changes: list[dict[str, Any]], findings: list[dict[str, Any]]) -> None:
        """Print changes and findings, given in the form in which a run stores them."""
        for change in changes:
            creates = change["creates"]
            self.stdout.write(f"{'+' if creates else '~'} {change['kind']} {change['name']}")
            for field, (before, after) in change["fields"].items():
                self.stdout.write(f"    {field}: {after}" if creates else f"    {field}: {before} -> {after}")
        for finding in findings:
            self.stdout.write(f"! {finding['subject']}: {netbox_status.finding_sentence(finding)}")

    def _progress(self, phase: str, done: int, total: int | None) -> None:
        if monotonic() - self._shown_at >= _EVERY_S:
            self._shown_at = monotonic()
            of = "" if total is None else f" of {total}"
            self.stderr.write(f"{netbox_status.PHASES[phase]}: {done}{of}")
