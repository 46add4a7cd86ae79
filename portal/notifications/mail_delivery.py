"""Mails on their way: called for when they are due, sent by one at a time, and known for what they became."""

import smtplib
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from portal.accounts import mail
from portal.accounts.email_change import EMAIL_CHANGE_REQUESTED, EMAIL_CHANGED
from portal.accounts.language import writing_to
from portal.accounts.password_reset import ACCOUNT_OPENED, PASSWORD_RESET_REQUESTED
from portal.core.absolute_urls import absolute_url
from portal.events.outbox import send_tasks
from portal.notifications.mail_preferences import unsubscribe_path
from portal.notifications.mail_recipients import MAILED_KINDS
from portal.notifications.mail_templates import mail_content
from portal.notifications.models import Group, Mail, MailOptOut
from portal.notifications.outdated_mail import ABOUT_LINES, ABOUT_ROUTERS, news_of, said_keep
from portal.notifications.task_names import SEND_MAIL
from portal.notifications.webhook_change_mails import RECEIVER_CHANGED, who_runs_it

# After each try that failed; after the last of them, three days on, it is given up.
_WAITS = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 180, 360, 720, 1440, 1440))
# Longer than a mail server may take (EMAIL_TIMEOUT), so that no two send one mail.
_SENDING = timedelta(seconds=60)
# A message that did not arrive by then counts as lost.
_CALLED_FOR = timedelta(seconds=60)
_AT_ONCE = 100
# They go to the new address and to the old one.
_NAME_THEIRS = (EMAIL_CHANGE_REQUESTED, EMAIL_CHANGED)


@transaction.atomic
def mails_call(*, now: datetime) -> int:
    """Request that due mails be sent, at most ``_AT_ONCE``; return how many.

    A mail of a kind that only a newer release knows waits for a worker of that release.
    """
    due = Mail.objects.filter(next_try_at__lte=now, kind__in=MAILED_KINDS).order_by("next_try_at")
    rows = list(due.select_for_update(skip_locked=True).values_list("pk", flat=True)[:_AT_ONCE])
    if rows:
        Mail.objects.filter(pk__in=rows).update(next_try_at=now + _CALLED_FOR)
        send_tasks(SEND_MAIL, [[pk] for pk in rows], now=now)
    return len(rows)


def mail_send(*, mail_id: int, now: datetime) -> None:
    """Send a mail, unless it was sent, is being sent, or has no reason any more.

    A process that ends between the server's acceptance and the note of it leaves the mail to be sent again,
    with the same Message-ID. This release sends no mail of a kind that it does not know.
    """
    free = Q(sending_until__isnull=True) | Q(sending_until__lt=now)
    mine = Mail.objects.filter(free, pk=mail_id, state=Mail.State.PENDING, kind__in=MAILED_KINDS)
    if not mine.update(sending_until=now + _SENDING):
        return
    found = Mail.objects.select_related("user", "customer").get(pk=mail_id)
    is_wanted, told = _is_wanted(found) and not _is_overtaken(found), None
    if found.kind in (*ABOUT_LINES, *ABOUT_ROUTERS) and is_wanted:
        told = news_of(found)
        is_wanted = told is not None
    try:
        with writing_to(found.user):
            said = mail_content(found, told or []) if is_wanted else None
            if said is not None:
                _send(found, *said)
    except (smtplib.SMTPException, OSError) as error:
        _failed(found, error, now)
    else:
        if said is None:
            _settle(found, Mail.State.DROPPED, now)
            return
        with transaction.atomic():
            _settle(found, Mail.State.SENT, now)
            if told is not None:
                said_keep(found, told)


def mails_forget(*, before: datetime) -> int:
    """Delete what was settled long ago, but for what readers were last told of a line; how many."""
    settled: QuerySet[Mail] = Mail.objects.exclude(state=Mail.State.PENDING).filter(created_at__lt=before)
    return settled.exclude(group=Group.STATUS, state=Mail.State.SENT).delete()[0]


def _send(found: Mail, template: str, values: dict[str, Any]) -> None:
    headers = {"Auto-Submitted": "auto-generated"}
    if found.group:
        unsubscribe = absolute_url(unsubscribe_path(found.user, found.group))
        headers["List-Unsubscribe"] = f"<{unsubscribe}>"
        headers["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        values = {"unsubscribe": unsubscribe, **values}
    subject = found.event_id or f"{found.customer_id}-{found.month:%Y-%m}"
    mail.send(
        to=_address(found),
        template=template,
        event=f"{found.kind}-{subject}",
        headers=headers,
        **values,
    )


def _is_wanted(found: Mail) -> bool:
    """Somebody may have unsubscribed, or left, since it was made."""
    user = found.user
    if not user.is_active or not _address(found):
        return False
    if found.kind == RECEIVER_CHANGED:
        return who_runs_it(found.customer_id).filter(pk=user.pk).exists()
    if not found.group:
        return True
    # Of lines and routers each reader is told of his own lines.
    is_theirs = user.is_noc or (found.group != Group.NOC and found.kind in (*ABOUT_LINES, *ABOUT_ROUTERS))
    if found.group != Group.NOC and not is_theirs:
        is_theirs = user.memberships.filter(customer=found.customer_id).exists()
    return is_theirs and not MailOptOut.objects.filter(user=found.user, group=found.group).exists()


def _address(found: Mail) -> str:
    """Its reader's, but for mails about another address: these name the one that they are for."""
    return str(found.data["to"]) if found.kind in _NAME_THEIRS else found.user.email


def _is_overtaken(found: Mail) -> bool:
    """Of several links of one kind the last one is sent, and no first password's to whoever has one."""
    if found.kind == ACCOUNT_OPENED:
        return found.user.has_usable_password()
    newer = Mail.objects.filter(user=found.user, kind=found.kind, event_id__gt=found.event_id or 0)
    return found.kind in (PASSWORD_RESET_REQUESTED, EMAIL_CHANGE_REQUESTED) and newer.exists()


def _settle(found: Mail, state: str, now: datetime, *, error: str = "") -> None:
    Mail.objects.filter(pk=found.pk).update(
        state=state, next_try_at=None, sending_until=None, settled_at=now, error=error, tries=found.tries + 1
    )


def _failed(found: Mail, error: Exception, now: datetime) -> None:
    text = f"{type(error).__name__}: {error}".replace("\0", "")[:300]
    if _is_for_good(error) or found.tries >= len(_WAITS):
        _settle(found, Mail.State.FAILED, now, error=text)
        return
    again = now + _WAITS[found.tries]
    Mail.objects.filter(pk=found.pk).update(
        next_try_at=again, sending_until=None, tries=found.tries + 1, error=text
    )


def _is_for_good(error: Exception) -> bool:
    """Whether the server will never take this mail for this reader (RFC 5321, section 4.2.1).

    What it says of the sender or of our password is no fault of the mail's, and is mended by somebody.
    """
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return all(code >= 500 for code, _ in error.recipients.values())
    return isinstance(error, smtplib.SMTPDataError) and error.smtp_code >= 500
