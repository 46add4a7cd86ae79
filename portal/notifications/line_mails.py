"""Mails about lines: lines with the same cause are reported in one mail, if they are still news.

Each reader has at most one pending mail for each kind and cause. Further lines join that mail. The mail is
sent two minutes after the event of its last line, but at most five minutes after its creation. The next mail
with the same kind and cause follows 15 minutes or an hour later at the earliest, depending on the kind. When
a mail is sent, it lists only the lines that are still news for the reader.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Max, QuerySet

from portal.core.db.sessions import AdvisoryLock
from portal.core.db.statements import execute
from portal.events.models import Event
from portal.inventory.models import RouterSilence
from portal.notifications.line_fault_causes import (
    OTHER,
    SILENT,
    black_hole_on,
    causes_of_down,
    causes_of_drift,
    silent_router,
)
from portal.notifications.mail_recipients import SETTLES_IN
from portal.notifications.models import Group, Mail, MailLine
from portal.telemetry.router_silences import REPORTING
from portal.telemetry.router_silences import SILENT as ROUTER_SILENT
from portal.vll.models import Vll
from portal.vll.states import IN_SERVICE, OperStatus

DOWN, UP, DRIFT, BLACK_HOLE = "vll.op-down", "vll.op-up", "vll.drift", "vll.black_hole"
STATUS_OF = {
    DOWN: MailLine.Status.DOWN,
    UP: MailLine.Status.UP,
    DRIFT: MailLine.Status.DRIFT,
    BLACK_HOLE: MailLine.Status.BLACK_HOLE,
}
_LONGEST = timedelta(minutes=5)
# The pause between two mails with one cause to a reader. An outage that spreads is more urgent than drift.
_PAUSE = {
    DOWN: timedelta(minutes=15),
    UP: timedelta(minutes=15),
    DRIFT: timedelta(hours=1),
    BLACK_HOLE: timedelta(hours=1),
}
_Key = tuple[int, str, str]


def lines_collect(
    events: Iterable[Event], readers: Mapping[int, Mapping[int, Group]], *, now: datetime
) -> None:
    """Add the lines of these events to the mails of their readers.

    ``readers``: for each event, the users who get a mail about it, each with the mail's group. A line that is
    up again is reported only to readers who got a mail about its outage.
    """
    happened = [(event, event.vll_id) for event in events if event.vll_id and readers[event.pk]]
    if not happened:
        return
    execute("SELECT pg_advisory_xact_lock(%s)", [AdvisoryLock.MAILS])
    users = {user for event, _ in happened for user in readers[event.pk]}
    causes = {
        DOWN: causes_of_down({vll for event, vll in happened if event.kind == DOWN}, now=now),
        DRIFT: causes_of_drift({vll for event, vll in happened if event.kind == DRIFT}),
        BLACK_HOLE: {
            vll: black_hole_on(event.data["path"]) for event, vll in happened if event.kind == BLACK_HOLE
        },
    }
    mailed = _mailed_down(users, {vll for event, vll in happened if event.kind == UP})
    waiting, pauses = _waiting(users), _pauses(users, now)
    lines: dict[tuple[int, UUID], MailLine] = {}
    for event, vll in sorted(happened, key=lambda one: one[0].pk):
        for user, group in readers[event.pk].items():
            if event.kind == UP and (user, vll) not in mailed:
                continue
            cause = mailed[user, vll] if event.kind == UP else causes[event.kind][vll]
            key = (user, event.kind, cause)
            mail = waiting.get(key)
            if mail is None:
                mail = waiting[key] = Mail.objects.create(
                    user_id=user,
                    group=group,
                    kind=event.kind,
                    cause=cause,
                    event_id=event.pk,
                    created_at=now,
                    next_try_at=max(event.at + SETTLES_IN, pauses.get(key, event.at)),
                )
            else:
                settled = min(event.at + SETTLES_IN, mail.created_at + _LONGEST)
                mail.next_try_at = max(mail.next_try_at or now, settled)
            lines[mail.pk, vll] = MailLine(
                mail=mail, vll_id=vll, event_id=event.pk, status=STATUS_OF[event.kind]
            )
    MailLine.objects.bulk_create(
        lines.values(),
        batch_size=1000,
        update_conflicts=True,
        unique_fields=["mail", "vll_id"],
        update_fields=["event_id"],
    )
    Mail.objects.bulk_update(waiting.values(), ["next_try_at"], batch_size=1000)


def _mailed_down(users: Iterable[int], vlls: Iterable[UUID]) -> dict[tuple[int, UUID], str]:
    """Return, by reader and line, the cause in the newest mail about an outage of the line."""
    states = (Mail.State.PENDING, Mail.State.SENT)
    rows = MailLine.objects.filter(
        status=MailLine.Status.DOWN, vll_id__in=vlls, mail__user__in=users, mail__state__in=states
    )
    return {
        (user, vll): cause or OTHER
        for user, vll, cause in rows.order_by("event_id").values_list("mail__user", "vll_id", "mail__cause")
    }


def _waiting(users: Iterable[int]) -> dict[_Key, Mail]:
    """Return and lock the pending mails that lines can still join. A sender waits, and finds all lines."""
    free = Mail.objects.filter(
        user__in=users, kind__in=STATUS_OF, state=Mail.State.PENDING, sending_until__isnull=True, tries=0
    )
    found = free.exclude(cause="").order_by("pk").select_for_update()
    return {(mail.user_id, mail.kind, mail.cause): mail for mail in found}


def _pauses(users: Iterable[int], now: datetime) -> dict[_Key, datetime]:
    sent = Mail.objects.filter(
        user__in=users,
        kind__in=STATUS_OF,
        state=Mail.State.SENT,
        settled_at__gte=now - max(_PAUSE.values()),
    )
    return {
        (user, kind, cause): at + _PAUSE[kind]
        for user, kind, cause, at in sent.order_by("settled_at").values_list(
            "user_id", "kind", "cause", "settled_at"
        )
        if at is not None
    }


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
    """Return whether the status of a line is news for the reader. ``last``: the status that was last sent.

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
    """Return the lines that concern the reader: for NOC staff all, else those of the reader's customers."""
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

    Nothing is stored for the NOC's mails about routers: the NOC gets no mails about lines going up or down.
    """
    if found.kind in ABOUT_ROUTERS and found.group == Group.NOC:
        return
    found.lines.all().delete()
    MailLine.objects.bulk_create(
        MailLine(mail=found, vll_id=each.line.pk, event_id=each.event_id, status=each.status)
        for each in updates
    )
