"""The lines of a mail that are still news for the reader, determined when the mail is sent."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Max, QuerySet

from portal.events.models import Event
from portal.inventory.models import RouterSilence
from portal.notifications.line_fault_causes import SILENT, silent_router
from portal.notifications.mail_batching import BLACK_HOLE, DOWN, DRIFT, UP
from portal.notifications.models import Group, Mail, MailLine
from portal.telemetry.router_silences import REPORTING
from portal.telemetry.router_silences import SILENT as ROUTER_SILENT
from portal.vll.models import Vll
from portal.vll.states import IN_SERVICE, OperStatus

_Status = MailLine.Status
# By kind of mail, the events that end the reported status: another status, or the end of the service.
_GONE = ("vll.suspended", "vll.pendingTerminate", "vll.terminated")
_ENDS = {
    DOWN: (DOWN, UP, "vll.op-unknown", *_GONE),
    UP: (DOWN, UP, "vll.op-unknown", *_GONE),
    DRIFT: ("vll.in_sync", "vll.pendingTerminate", "vll.terminated"),
    BLACK_HOLE: (BLACK_HOLE, "vll.black_hole_gone", *_GONE),
}
ABOUT_LINES = (DOWN, UP, DRIFT, BLACK_HOLE)
ABOUT_ROUTERS = (ROUTER_SILENT, REPORTING)


@dataclass(frozen=True, slots=True)
class LineUpdate:
    """A line, and the status of the line that the mail reports."""

    line: Vll
    status: str
    event_id: int


def current_updates(found: Mail) -> list[LineUpdate] | None:
    """Return the lines to report now, sorted by name; None if the mail need not be sent."""
    if found.kind in ABOUT_ROUTERS:
        return _of_router(found)
    lines = {line.vll_id: line for line in found.lines.all()}
    ended = _newest(lines, _ENDS[found.kind])
    last = _last_mailed(found, lines)
    silent = found.cause.startswith(f"{SILENT}:")
    updates = [
        LineUpdate(vll, lines[vll.pk].status, lines[vll.pk].event_id)
        for vll in _lines_of_reader(found).filter(pk__in=lines).order_by("description", "pk")
        if ended.get(vll.pk, 0) <= lines[vll.pk].event_id
        and _is_new(found.kind, last.get(vll.pk), silent=silent)
    ]
    return updates or None


def _is_new(kind: str, last: str | None, *, silent: bool) -> bool:
    """Return whether the status of a line is news for the reader. ``last``: the status that the reader last
    got.

    An outage is not reported again if the reader already got it, or got a mail about the silent router that
    causes it (``silent``). A line that is up is reported only after an outage.
    """
    if kind == DOWN:
        return last != _Status.DOWN and not (silent and last == _Status.SILENT)
    return kind != UP or last == _Status.DOWN


def _of_router(found: Mail) -> list[LineUpdate] | None:
    """Return the reader's lines on the router, with their status; None if the mail need not be sent.

    A mail about a silence is not needed if the router has meanwhile reported again. A mail about the end of a
    silence is not needed if the router has meanwhile fallen silent again. It is not needed either if the
    reader did not get the mail about the silence.
    """
    event_id = found.event_id or 0
    router_id = int(found.cause.partition(":")[2])
    other = REPORTING if found.kind == ROUTER_SILENT else ROUTER_SILENT
    if Event.objects.filter(router_id=router_id, kind=other, id__gt=event_id).exists():
        return None
    here = _lines_of_reader(found).filter(ends__port__router=router_id, lifecycle__in=IN_SERVICE).distinct()
    if found.kind == ROUTER_SILENT:
        is_silent = RouterSilence.objects.filter(router=router_id, until__isnull=True).exists()
        updates = [LineUpdate(vll, _Status.SILENT, event_id) for vll in here.order_by("description", "pk")]
        return updates if is_silent and (updates or found.group == Group.NOC) else None
    sent = Mail.objects.filter(
        user=found.user, kind__in=ABOUT_ROUTERS, cause=silent_router(router_id), state=Mail.State.SENT
    ).order_by("-event_id")
    if sent.values_list("kind", flat=True).first() != ROUTER_SILENT:
        return None
    return [
        LineUpdate(vll, _Status.UP if vll.oper_status == OperStatus.UP else _Status.DOWN, event_id)
        for vll in here.order_by("description", "pk")
    ]


def _lines_of_reader(found: Mail) -> QuerySet[Vll]:
    """Return the lines that concern the reader: all lines for NOC staff, else those of the reader's
    customers.
    """
    lines = Vll.objects.select_related("customer")
    if found.group == Group.NOC:
        return lines
    return lines.filter(customer__memberships__user=found.user)


def _newest(vlls: Iterable[UUID], kinds: Iterable[str]) -> dict[UUID, int]:
    events = Event.objects.filter(vll_id__in=list(vlls), kind__in=kinds)
    newest = events.values("vll_id").annotate(newest=Max("id"))
    return {vll: event for vll, event in newest.values_list("vll_id", "newest") if vll is not None}


def _last_mailed(found: Mail, vlls: Iterable[UUID]) -> dict[UUID, str]:
    """Return, by line, the status that this reader last got. Drift and black holes do not count."""
    rows = MailLine.objects.filter(
        mail__user=found.user, mail__state=Mail.State.SENT, vll_id__in=list(vlls)
    ).exclude(status__in=(_Status.DRIFT, _Status.BLACK_HOLE))
    return dict(rows.order_by("event_id", "pk").values_list("vll_id", "status"))


def updates_record(found: Mail, updates: Iterable[LineUpdate]) -> None:
    """Replace the collected lines of a mail with the lines and statuses that the sent mail reports.

    Nothing is stored for the NOC's mails about routers, because the NOC gets no mails about lines that are up
    or down.
    """
    if found.kind in ABOUT_ROUTERS and found.group == Group.NOC:
        return
    found.lines.all().delete()
    MailLine.objects.bulk_create(
        MailLine(mail=found, vll_id=each.line.pk, event_id=each.event_id, status=each.status)
        for each in updates
    )
