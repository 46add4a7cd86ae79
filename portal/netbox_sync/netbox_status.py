"""The state of the synchronization with NetBox, for pages, alarms and the API."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from portal.netbox_sync import user_messages
from portal.netbox_sync.configuration import configuration
from portal.netbox_sync.line_export import lines_due
from portal.netbox_sync.models import ExportedVll, NetboxRun, NetboxState
from portal.netbox_sync.run_queue import stale_after


@dataclass(frozen=True, slots=True, kw_only=True)
class NetboxStatus:
    """The state of the synchronization.

    ``stale``: whether the last complete import is older than two intervals. ``waiting``: the number of lines
    that are due for export. ``in_error``: the number of lines that could not be exported. ``error``: the
    sentence of the current failure, or "".
    """

    url: str
    state: NetboxState
    stale: bool
    waiting: int
    in_error: int
    error: str


def netbox_status(now: datetime) -> NetboxStatus | None:
    """Return the state; None if no NetBox is configured. This function does not write to the database."""
    at = configuration()
    if at is None:
        return None
    state = NetboxState.objects.filter(pk=1).first() or NetboxState(pk=1)
    known_at = state.imported_at
    return NetboxStatus(
        url=at.url,
        state=state,
        stale=known_at is None or known_at < now - stale_after(at),
        waiting=lines_due().count(),
        in_error=ExportedVll.objects.filter(error__isnull=False).count(),
        error=user_messages.error_sentence(state.error) if state.error else "",
    )


def last_complete_run() -> NetboxRun | None:
    """Return the last run that ended without an error. Its findings are the current findings."""
    return NetboxRun.objects.filter(finished_at__isnull=False, error__isnull=True).order_by("-id").first()


def lines_in_error() -> Any:
    """Return the lines that could not be exported, with the reasons."""
    return ExportedVll.objects.filter(error__isnull=False).select_related("vll__customer").order_by("vll_id")
