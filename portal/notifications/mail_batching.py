"""Lines that share a cause are one mail: what follows within minutes joins the mail that waits.

Each reader has one mail of a kind and a cause that waits to be sent. It waits until the last line that joined
has been so for two minutes, and five at most. What follows later of the same cause waits longer: a digest.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection

from portal.events.models import Event
from portal.notifications.line_fault_causes import OTHER, black_hole_on, causes_of_down, causes_of_drift
from portal.notifications.mail_recipients import SETTLES_IN
from portal.notifications.models import Group, Mail, MailLine

DOWN, UP, DRIFT, BLACK_HOLE = "vll.op-down", "vll.op-up", "vll.drift", "vll.black_hole"
SAID = {
    DOWN: MailLine.Said.DOWN,
    UP: MailLine.Said.UP,
    DRIFT: MailLine.Said.DRIFT,
    BLACK_HOLE: MailLine.Said.BLACK_HOLE,
}
_LONGEST = timedelta(minutes=5)
# Between two mails of one cause to one reader: an outage that spreads is told sooner than drift that does.
_REST = {
    DOWN: timedelta(minutes=15),
    UP: timedelta(minutes=15),
    DRIFT: timedelta(hours=1),
    BLACK_HOLE: timedelta(hours=1),
}
# Two that collect at once would each begin a mail.
_LOCK = 7_305_011
_Key = tuple[int, str, str]


def lines_collect(
    events: Iterable[Event], readers: Mapping[int, Mapping[int, Group]], *, now: datetime
) -> None:
    """Put lines into their readers' mails; ``readers``: by event, who hears of it in which group."""
    happened = [(event, event.vll_id) for event in events if event.vll_id and readers[event.pk]]
    if not happened:
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
    users = {user for event, _ in happened for user in readers[event.pk]}
    causes = {
        DOWN: causes_of_down({vll for event, vll in happened if event.kind == DOWN}, now=now),
        DRIFT: causes_of_drift({vll for event, vll in happened if event.kind == DRIFT}),
        BLACK_HOLE: {
            vll: black_hole_on(event.data["path"]) for event, vll in happened if event.kind == BLACK_HOLE
        },
    }
    told = _told_down(users, {vll for event, vll in happened if event.kind == UP})
    waiting, rests = _waiting(users), _rests(users, now)
    lines: dict[tuple[int, UUID], MailLine] = {}
    for event, vll in sorted(happened, key=lambda one: one[0].pk):
        for user, group in readers[event.pk].items():
            if event.kind == UP and (user, vll) not in told:
                continue
            cause = told[user, vll] if event.kind == UP else causes[event.kind][vll]
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
                    next_try_at=max(event.at + SETTLES_IN, rests.get(key, event.at)),
                )
            else:
                settled = min(event.at + SETTLES_IN, mail.created_at + _LONGEST)
                mail.next_try_at = max(mail.next_try_at or now, settled)
            lines[mail.pk, vll] = MailLine(mail=mail, vll_id=vll, event_id=event.pk, said=SAID[event.kind])
    MailLine.objects.bulk_create(
        lines.values(),
        batch_size=1000,
        update_conflicts=True,
        unique_fields=["mail", "vll_id"],
        update_fields=["event_id"],
    )
    Mail.objects.bulk_update(waiting.values(), ["next_try_at"], batch_size=1000)


def _told_down(users: Iterable[int], vlls: Iterable[UUID]) -> dict[tuple[int, UUID], str]:
    """By reader and line, the cause that its newest mail about an outage names."""
    states = (Mail.State.PENDING, Mail.State.SENT)
    rows = MailLine.objects.filter(
        said=MailLine.Said.DOWN, vll_id__in=vlls, mail__user__in=users, mail__state__in=states
    )
    return {
        (user, vll): cause or OTHER
        for user, vll, cause in rows.order_by("event_id").values_list("mail__user", "vll_id", "mail__cause")
    }


def _waiting(users: Iterable[int]) -> dict[_Key, Mail]:
    """The mails that lines may still join. Who is about to send one waits for this, and then finds all."""
    free = Mail.objects.filter(
        user__in=users, kind__in=SAID, state=Mail.State.PENDING, sending_until__isnull=True, tries=0
    )
    found = free.exclude(cause="").order_by("pk").select_for_update()
    return {(mail.user_id, mail.kind, mail.cause): mail for mail in found}


def _rests(users: Iterable[int], now: datetime) -> dict[_Key, datetime]:
    """Until when a reader hears no more of a cause."""
    sent = Mail.objects.filter(
        user__in=users,
        kind__in=SAID,
        state=Mail.State.SENT,
        settled_at__gte=now - max(_REST.values()),
    )
    return {
        (user, kind, cause): at + _REST[kind]
        for user, kind, cause, at in sent.order_by("settled_at").values_list(
            "user_id", "kind", "cause", "settled_at"
        )
        if at is not None
    }
