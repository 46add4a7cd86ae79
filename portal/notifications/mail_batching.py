"""Batching of mails: lines with the same cause are reported in one mail.

Each reader has at most one pending mail for each kind and cause. Further lines join that mail. The mail is
sent two minutes after the event of its last line, but at most five minutes after its creation. The next mail
with the same kind and cause follows 15 minutes or an hour later at the earliest, depending on the kind.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection

from portal.core.db.advisory_locks import AdvisoryLock
from portal.events.models import Event
from portal.notifications.line_fault_causes import OTHER, black_hole_on, causes_of_down, causes_of_drift
from portal.notifications.mail_recipients import SETTLES_IN
from portal.notifications.models import Group, Mail, MailLine

DOWN, UP, DRIFT, BLACK_HOLE = "vll.op-down", "vll.op-up", "vll.drift", "vll.black_hole"
STATUS_OF = {
    DOWN: MailLine.Status.DOWN,
    UP: MailLine.Status.UP,
    DRIFT: MailLine.Status.DRIFT,
    BLACK_HOLE: MailLine.Status.BLACK_HOLE,
}
_LONGEST = timedelta(minutes=5)
# The pause between two mails with the same cause to one reader. An outage that spreads is more urgent than
# drift.
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
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [AdvisoryLock.MAILS])
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
    """Return the pending mails that lines can still join, and lock them.

    The lock makes a sender wait, so that it then finds all lines.
    """
    free = Mail.objects.filter(
        user__in=users, kind__in=STATUS_OF, state=Mail.State.PENDING, sending_until__isnull=True, tries=0
    )
    found = free.exclude(cause="").order_by("pk").select_for_update()
    return {(mail.user_id, mail.kind, mail.cause): mail for mail in found}


def _pauses(users: Iterable[int], now: datetime) -> dict[_Key, datetime]:
    """Return the end of the pause, by reader, kind and cause."""
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
