"""The monthly report: the frozen 95th percentiles of each line, mailed once per month and reader."""

from datetime import date, datetime, timedelta
from typing import Any

from django.db import transaction
from django.urls import reverse

from portal.accounts import mail
from portal.core.db.each_row import each_row
from portal.core.http.absolute_urls import absolute_url
from portal.core.units import lasting_text, rate_text
from portal.notifications.mail_recipients import members_of, opted_out
from portal.notifications.models import Group, Mail, ReportedMonth
from portal.notifications.models.mail import MONTHLY_REPORT
from portal.telemetry.availability import Times, availability_of_many, availability_text
from portal.telemetry.models import FrozenMonth, MonthlyPercentile
from portal.telemetry.monthly_figures import newest_of_month
from portal.telemetry.time_spans import month_span
from portal.vll.models import Vll

# Months that were frozen longer ago than this get no report. They are from before the portal sent reports.
_REPORTED_FOR = timedelta(days=7)
# The most lines that a report lists. The portal's pages show all lines.
_MOST_LINES = 500
_SIDES = ("a", "z")


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


def report(found: Mail) -> tuple[str, dict[str, Any]] | None:
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
        "rows": rows[:_MOST_LINES],
        "more": max(0, len(rows) - _MOST_LINES),
        "link": absolute_url(reverse("web:overview")),
    }


def _row(line: Vll, sides: dict[str, MonthlyPercentile], times: Times) -> dict[str, Any]:
    """Return the values of a line: percentiles, number of 5-minute buckets without counts, and availability.

    ``p95`` is the larger of the percentiles of the two ends. Availability does not change after the month is
    frozen.
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
    for side in _SIDES:
        end = sides.get(side)
        row[side] = {
            "in": _rate(end.in_bps if end else None),
            "out": _rate(end.out_bps if end else None),
        }
    return row


def _rate(bps: int | None) -> str:
    return "–" if bps is None else rate_text(bps)
