"""The content of a mail: the name of its template below templates/mail, and the template's values.

The values are read when the mail is sent.
"""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from django.urls import reverse

from portal.accounts import mail
from portal.accounts.own_account import (
    ACCOUNT_OPENED,
    EMAIL_CHANGE_REQUESTED,
    EMAIL_CHANGED,
    PASSWORD_RESET_REQUESTED,
    email_change_path,
    password_path,
)
from portal.core.http.absolute_urls import absolute_url
from portal.diagnosis.diagnosis import stored_sentence
from portal.diagnosis.models import TroubleReport
from portal.inventory.models import Router
from portal.notifications.line_fault_causes import cause_sentence
from portal.notifications.models import Group, Mail, MailLine, Webhook
from portal.notifications.monthly_report import report
from portal.notifications.outdated_mail import ABOUT_LINES, ABOUT_ROUTERS, LineUpdate
from portal.notifications.webhook_change_mails import RECEIVER_CHANGED, webhook_change_content
from portal.vll.models import Vll
from portal.vll.sentences import failure_sentence

MailContent = tuple[str, dict[str, Any]]
# Mails about the reader's own account: the template, and the path of the link.
_ACCOUNT: dict[str, tuple[str, Callable[[Mail], str]]] = {
    PASSWORD_RESET_REQUESTED: ("password_reset", lambda found: password_path(found.user)),
    ACCOUNT_OPENED: ("account_opened", lambda found: password_path(found.user)),
    EMAIL_CHANGE_REQUESTED: (
        "email_change",
        lambda found: email_change_path(found.user, to=found.data["to"]),
    ),
    EMAIL_CHANGED: ("email_changed", lambda _found: reverse("account_reset_password")),
}

# The most lines that a mail lists. The portal's pages show all lines.
MOST_LINES = 500


def mail_content(found: Mail, updates: Sequence[LineUpdate]) -> MailContent | None:
    """Return the template and the values of a mail; None if the object that it is about was deleted.

    ``updates``: the lines that the mail reports.
    """
    if found.kind in _ACCOUNT:
        template, path = _ACCOUNT[found.kind]
        return template, {"username": found.user.username, "link": absolute_url(path(found))}
    if found.kind == RECEIVER_CHANGED:
        return webhook_change_content(found)
    settings_page = absolute_url(reverse("web:notifications"))
    if found.month is not None:
        content = report(found)
    elif found.kind == "webhook.disabled":
        content = _webhook(found)
    elif found.kind in ABOUT_ROUTERS:
        content = _router(found, updates)
    elif found.kind in ABOUT_LINES and len(updates) > 1:
        content = "lines", {"what": found.kind.partition(".")[2], **_lines(found, updates)}
    else:
        content = _line(found, updates[0].line.pk if updates else found.vll_id)
    if content is None:
        return None
    template, values = content
    return template, {"settings": settings_page, "group": found.group, **values}


def _router(found: Mail, updates: Sequence[LineUpdate]) -> MailContent | None:
    router = Router.objects.filter(pk=found.cause.partition(":")[2]).first()
    if router is None:
        return None
    values = {"what": found.kind.partition(".")[2], "router": router.name, **_lines(found, updates)}
    if found.group == Group.NOC:
        values["link"] = absolute_url(reverse("web:noc-router", args=[router.pk]))
    return "router", values


def _lines(found: Mail, updates: Sequence[LineUpdate]) -> dict[str, Any]:
    return {
        "count": len(updates),
        "reason": "" if found.kind in ABOUT_ROUTERS else cause_sentence(found.cause),
        "rows": [
            {
                "line": mail.one_line(str(each.line)),
                "customer": mail.one_line(each.line.customer.name),
                "is_up": each.status == MailLine.Status.UP,
                "link": absolute_url(reverse("web:vll", args=[each.line.pk])),
            }
            for each in updates[:MOST_LINES]
        ],
        "more": max(0, len(updates) - MOST_LINES),
        "link": absolute_url(reverse("web:overview")),
    }


def _line(found: Mail, vll_id: UUID | None) -> MailContent | None:
    """Return the content of a mail about one line, an order or a trouble report.

    The value ``what`` is the second part of the mail's kind. It selects the sentence in the template.
    """
    line = Vll.objects.select_related("customer").filter(pk=vll_id).first()
    if line is None:
        return None
    subject, _, what = found.kind.partition(".")
    failure = found.data.get("failure") or {}
    values = {
        "what": what,
        "line": str(line),
        "customer": line.customer.name,
        "link": absolute_url(reverse("web:vll", args=[line.pk])),
        "action": found.data.get("action", ""),
        "reason": str(failure_sentence(failure) or failure.get("code") or cause_sentence(found.cause)),
    }
    if subject == "trouble":
        return "trouble", {**values, **_trouble(found)}
    return ("order" if subject == "order" else "line", values)


def _trouble(found: Mail) -> dict[str, Any]:
    """Return the reporter, the reporter's note, and the diagnosis at the time of the trouble report."""
    report = TroubleReport.objects.filter(pk=found.data["trouble_report"]).first()
    if report is None:
        return {}
    return {
        "by": report.reported_by,
        "note": report.note,
        "verdict": stored_sentence(report.finding["verdict"], report.finding.get("facts")),
        "checks": report.finding["checks"],
    }


def _webhook(found: Mail) -> MailContent | None:
    webhook = Webhook.objects.filter(pk=found.data["webhook"]).first()
    if webhook is None:
        return None
    return "webhook_disabled", {
        "webhook": str(webhook),
        "address": webhook.url,
        "because": found.data["because"],
        "link": absolute_url(reverse("web:webhook", args=[webhook.pk])),
    }
