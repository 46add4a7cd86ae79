"""Delivery of mails: send tasks for mails that are due, send each mail once, and record the result."""

import smtplib
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from portal.accounts import mail, own_account
from portal.accounts.language import writing_to
from portal.accounts.models import User
from portal.celery_tasks import SEND_MAIL
from portal.core import clock
from portal.core.http import absolute_url
from portal.events.task_requests import resend_tasks
from portal.notifications.line_mails import ABOUT_LINES, ABOUT_ROUTERS, current_updates, updates_record
from portal.notifications.mail_recipients import MAILED_KINDS, RECEIVER_CHANGED, unsubscribe_path, who_runs_it
from portal.notifications.mail_templates import mail_content
from portal.notifications.models import Group, Mail, MailOptOut

# The wait after each failed attempt. The last attempt is about three days after the first.
_WAITS = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 180, 360, 720, 1440, 1440))
# The time for which a sender claims a mail. It is longer than EMAIL_TIMEOUT, the timeout of the mail server,
# so that two processes do not send the same mail.
_SENDING = timedelta(seconds=60)
_AT_ONCE = 100
_RECENT = timedelta(minutes=5)
# Kinds of mail whose ``data`` contains the recipient: the new or the old address of the account.
_NAMES_RECIPIENT = (own_account.EMAIL_CHANGE_REQUESTED, own_account.EMAIL_CHANGED)


def mails_call(*, now: datetime) -> int:
    """Send tasks for the ``_AT_ONCE`` mails that have been due longest. Return the number of tasks.

    A mail gets no task if its last task may still wait for a worker. Mails of kinds that this release does
    not know are left to workers of a newer release.
    """
    due = Mail.objects.filter(_free(now), next_try_at__lte=now, kind__in=MAILED_KINDS)
    rows = due.order_by("next_try_at").values_list("pk", flat=True)[:_AT_ONCE]
    return len(resend_tasks(SEND_MAIL, [(pk,) for pk in rows]))


def mail_send(*, mail_id: int, now: datetime) -> None:
    """Send a mail, unless it was sent, is being sent, or is no longer needed.

    If the process is killed after the server accepted the mail and before the result is stored, the mail is
    sent again with the same Message-ID. Mails of kinds that this release does not know are not sent.
    """
    mine = Mail.objects.filter(_free(now), pk=mail_id, state=Mail.State.PENDING, kind__in=MAILED_KINDS)
    if not mine.update(sending_until=now + _SENDING):
        return
    found = Mail.objects.select_related("user", "customer").get(pk=mail_id)
    is_wanted, updates = _is_wanted(found) and not _is_overtaken(found), None
    if found.kind in (*ABOUT_LINES, *ABOUT_ROUTERS) and is_wanted:
        updates = current_updates(found)
        is_wanted = updates is not None
    try:
        with writing_to(found.user):
            content = mail_content(found, updates or []) if is_wanted else None
            if content is not None:
                _send(found, *content)
    except (smtplib.SMTPException, OSError) as error:
        _failed(found, error, now)
    else:
        if content is None:
            _settle(found, Mail.State.DROPPED, now)
            return
        with transaction.atomic():
            _settle(found, Mail.State.SENT, now)
            if updates is not None:
                updates_record(found, updates)


def mails_forget(*, before: datetime) -> int:
    """Delete mails that were created before that time and are not pending. Return the number of deleted rows.

    Sent mails about the status of lines are kept, because they show which status a reader last got.
    """
    settled: QuerySet[Mail] = Mail.objects.exclude(state=Mail.State.PENDING).filter(created_at__lt=before)
    return settled.exclude(group=Group.STATUS, state=Mail.State.SENT).delete()[0]


def _free(now: datetime) -> Q:
    return Q(sending_until__isnull=True) | Q(sending_until__lt=now)


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
    """Return False if the reader has unsubscribed, left the customer, or lost the address or role."""
    user = found.user
    if not user.is_active or not _address(found):
        return False
    if found.kind == RECEIVER_CHANGED:
        return who_runs_it(found.customer_id).filter(pk=user.pk).exists()
    if not found.group:
        return True
    # Members may read about their own lines and the routers of these lines. Other queries choose the lines.
    concerns_reader = user.is_noc or (
        found.group != Group.NOC and found.kind in (*ABOUT_LINES, *ABOUT_ROUTERS)
    )
    if found.group != Group.NOC and not concerns_reader:
        concerns_reader = user.memberships.filter(customer=found.customer_id).exists()
    return concerns_reader and not MailOptOut.objects.filter(user=found.user, group=found.group).exists()


def _address(found: Mail) -> str:
    """Return the recipient's address: from the mail if it is about a change of address, else the user's."""
    return str(found.data["to"]) if found.kind in _NAMES_RECIPIENT else found.user.email


def _is_overtaken(found: Mail) -> bool:
    """Return whether a newer mail of this kind exists, or the user already has the first password."""
    if found.kind == own_account.ACCOUNT_OPENED:
        return found.user.has_usable_password()
    newer = Mail.objects.filter(user=found.user, kind=found.kind, event_id__gt=found.event_id or 0)
    return (
        found.kind in (own_account.PASSWORD_RESET_REQUESTED, own_account.EMAIL_CHANGE_REQUESTED)
        and newer.exists()
    )


def _settle(found: Mail, state: str, now: datetime, *, error: str = "") -> None:
    Mail.objects.filter(pk=found.pk).update(
        state=state, next_try_at=None, sending_until=None, settled_at=now, error=error, tries=found.tries + 1
    )


def _failed(found: Mail, error: Exception, now: datetime) -> None:
    text = f"{type(error).__name__}: {error}".replace("\0", "")[:300]
    if _is_permanent(error) or found.tries >= len(_WAITS):
        _settle(found, Mail.State.FAILED, now, error=text)
        return
    again = now + _WAITS[found.tries]
    Mail.objects.filter(pk=found.pk).update(
        next_try_at=again, sending_until=None, tries=found.tries + 1, error=text
    )


def _is_permanent(error: Exception) -> bool:
    """Return whether the error is the recipient's (RFC 5321, 4.2.1). An operator can fix all other errors."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return all(code >= 500 for code, _ in error.recipients.values())
    return isinstance(error, smtplib.SMTPDataError) and error.smtp_code >= 500


def mails_are_late() -> bool:
    """Return whether mails wait for a retry, and no mail at all was sent in the last 5 minutes."""
    refused = Mail.objects.filter(next_try_at__isnull=False, tries__gte=1)
    taken = Mail.objects.filter(state=Mail.State.SENT, settled_at__gte=clock.now() - _RECENT)
    return refused.exists() and not taken.exists()


def first_password_mail(person: User) -> Mail | None:
    """Return the newest mail with a link to set the first password of this account; None if there is none.

    Such mails are sent when the NOC opens an account.
    """
    found: QuerySet[Mail] = Mail.objects.filter(user=person, kind=own_account.ACCOUNT_OPENED)
    return found.order_by("-event_id").first()
