"""The content of a mail: the name of its template below templates/mail, and the template's values.

The values are read when the mail is sent. The mails with the monthly report, the frozen 95th percentiles of
each line, are created here too, once per month and reader.
"""

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.urls import reverse

from portal.accounts import mail, own_account
from portal.core.background_work import each_row
from portal.core.http import absolute_url
from portal.core.reader_texts import lasting_text, rate_text
from portal.diagnosis.diagnosis import stored_sentence
from portal.diagnosis.models import TroubleReport
from portal.inventory.models import Router
from portal.notifications.line_fault_causes import cause_sentence
from portal.notifications.line_mails import ABOUT_LINES, ABOUT_ROUTERS, LineUpdate
from portal.notifications.mail_recipients import RECEIVER_CHANGED, members_of, opted_out
from portal.notifications.models import MONTHLY_REPORT, Group, Mail, MailLine, ReportedMonth, Webhook
from portal.telemetry.availability import Times, availability_of_many, availability_text
from portal.telemetry.models import FrozenMonth, MonthlyPercentile
from portal.telemetry.monthly_figures import newest_of_month
from portal.telemetry.time_spans import month_span
from portal.vll.models import Vll
from portal.vll.sentences import failure_sentence

MailContent = tuple[str, dict[str, Any]]
# Mails about the reader's own account: the template, and the path of the link.
_ACCOUNT: dict[str, tuple[str, Callable[[Mail], str]]] = {
    own_account.PASSWORD_RESET_REQUESTED: (
        "password_reset",
        lambda found: own_account.password_path(found.user),
    ),
    own_account.ACCOUNT_OPENED: ("account_opened", lambda found: own_account.password_path(found.user)),
    own_account.EMAIL_CHANGE_REQUESTED: (
        "email_change",
        lambda found: own_account.email_change_path(found.user, to=found.data["to"]),
    ),
    own_account.EMAIL_CHANGED: ("email_changed", lambda _found: reverse("account_reset_password")),
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
        return "webhook_changed", {**found.data, "link": absolute_url(reverse("web:webhooks"))}
    settings_page = absolute_url(reverse("web:notifications"))
    if found.month is not None:
        content = monthly_content(found)
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


# Months that were frozen longer ago than this get no report. They are from before the portal sent reports.
_REPORTED_FOR = timedelta(days=7)


def monthly_reports_make(*, now: datetime) -> int:
    """Create the mails for each month that was frozen and not yet reported. Return the number of mails."""
    frozen = FrozenMonth.objects.filter(frozen_at__gte=now - _REPORTED_FOR)
    months = frozen.exclude(month__in=ReportedMonth.objects.values("month")).order_by("month")
    rows = months.values_list("month", flat=True)
    return sum(each_row(rows, lambda month: _month_report(month, now), what="the reports of a month"))


@transaction.atomic
def _month_report(month: date, now: datetime) -> int:
    _, is_mine = ReportedMonth.objects.get_or_create(month=month, defaults={"made_at": now})
    if not is_mine:
        return 0
    measured = MonthlyPercentile.objects.filter(month=month).values("vll_id")
    customers = set(Vll.objects.filter(pk__in=measured).values_list("customer_id", flat=True))
    members = members_of(customers)
    unwanted = opted_out({reader.user for readers in members.values() for reader in readers})
    mails = [
        Mail(
            user_id=reader.user,
            customer_id=customer,
            group=Group.REPORTS,
            kind=MONTHLY_REPORT,
            month=month,
            created_at=now,
            next_try_at=now,
        )
        for customer, readers in members.items()
        for reader in readers
        if (reader.user, Group.REPORTS.value) not in unwanted
    ]
    return len(Mail.objects.bulk_create(mails, batch_size=1000))


def monthly_content(found: Mail) -> tuple[str, dict[str, Any]] | None:
    """Return the template and the values of a report; None if the customer has no values for the month."""
    if found.customer is None or found.month is None:
        return None
    lines = {line.pk: line for line in Vll.objects.filter(customer=found.customer_id)}
    ends = newest_of_month(found.month, list(lines))
    if not ends:
        return None
    since, until = month_span(found.month)
    times = availability_of_many(vlls=list(ends), since=since, until=until)
    rows = sorted(
        (_row(lines[pk], sides, times.get(pk, Times())) for pk, sides in ends.items()),
        key=lambda row: row["line"],
    )
    return "monthly_report", {
        "customer": found.customer.name,
        "month": f"{found.month:%Y-%m}",
        "rows": rows[:MOST_LINES],
        "more": max(0, len(rows) - MOST_LINES),
        "link": absolute_url(reverse("web:overview")),
    }


def _row(line: Vll, sides: dict[str, MonthlyPercentile], times: Times) -> dict[str, Any]:
    """Return the values of a line: percentiles, number of 5-minute buckets without counts, and availability.

    ``p95`` is the larger of the percentiles of the two ends. Availability does not change in a frozen month.
    """
    largest = [row.max_bps for row in sides.values() if row.max_bps is not None]
    row: dict[str, Any] = {
        "line": mail.one_line(str(line)),
        "p95": _rate(max(largest, default=None)),
        "missing": max((each.missing for each in sides.values()), default=0),
        "simulated": any(each.simulated for each in sides.values()),
        "available": availability_text(times.availability, times.known_ratio) or "–",
        "down": lasting_text(times.down_s),
        "unknown": lasting_text(times.unknown_s),
        "link": absolute_url(reverse("web:vll-months", args=[line.pk])),
    }
    for side in "az":
        end = sides.get(side)
        row[side] = {
            "in": _rate(end.in_bps if end else None),
            "out": _rate(end.out_bps if end else None),
        }
    return row


def _rate(bps: int | None) -> str:
    return "–" if bps is None else rate_text(bps)
