"""The monthly report: the frozen percentiles of each line, to each reader once."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.notifications.mail_delivery import mail_send
from portal.notifications.mail_templates import monthly_reports_make
from portal.notifications.models import Mail, MailOptOut
from portal.telemetry.models import (
    FrozenMonth,
    MonthlyPercentile,
    OperInterval,
)
from portal.vll.models import Vll
from tests.integration.accounts.test_mails import Reader, parts
from tests.integration.isp import Isp
from tests.integration.notifications.mail_server import MailServer
from tests.integration.orders import order

pytestmark = pytest.mark.django_db

MONTH = date(2026, 10, 1)


@pytest.fixture
def line(isp: Isp, alice: User) -> Vll:
    """With a frozen month: 12 Mbit/s at most at its A end, nothing at its Z end."""
    vll = order(isp, alice).vll
    freeze(vll, "a", in_bps=10**7, out_bps=12 * 10**6, max_bps=12 * 10**6, missing=3)
    freeze(vll, "z", in_bps=None, out_bps=None, max_bps=None, missing=0)
    FrozenMonth.objects.create(month=MONTH, frozen_at=clock.now())
    return vll


def freeze(vll: Vll, side: str, **figures: Any) -> None:
    MonthlyPercentile.objects.create(
        vll_id=vll.pk,
        side=side,
        month=MONTH,
        counted=8000,
        simulated=False,
        frozen_at=clock.now(),
        **figures,
    )


def send_reports() -> None:
    monthly_reports_make(now=clock.now())
    for pk in Mail.objects.filter(state="pending").values_list("pk", flat=True):
        mail_send(mail_id=pk, now=clock.now())


def test_it_says_each_lines_percentiles(server: MailServer, line: Vll) -> None:
    send_reports()
    (message,) = server.took
    assert message["Subject"] == "[Longline] Alpine Dairy: report of 2026-10"
    plain, html = parts(message)
    for said in (
        "ZRH-AMS: 12 Mbit/s",
        "A end: in 10 Mbit/s, out 12 Mbit/s",
        "Z end: in –, out –",
        "Not measured: 3 times 5 minutes",
        f"/vlls/{line.pk}/months/",
    ):
        assert said in plain
    assert [word for word in Reader(html).words if word != "Longline"] == plain.split()


def test_it_says_how_much_of_the_month_was_up_down_and_unknown(server: MailServer, line: Vll) -> None:
    OperInterval.objects.all().delete()
    began = datetime(2026, 10, 1, tzinfo=UTC)
    for status, hours in (("op-up", 700), ("op-unknown", 6), ("op-down", 1), ("op-up", 500)):
        ended = began + timedelta(hours=hours)
        OperInterval.objects.create(vll_id=line.pk, status=status, began_at=began, ended_at=ended)
        began = ended
    send_reports()
    (message,) = server.took
    # Up for 700 and 37 of 744 hours.
    said = "Available: 99.864 % of the known 99.193 %; down 1 h, unknown 6 h"
    assert said in parts(message)[0]
    assert said in " ".join(Reader(parts(message)[1]).words)


def test_it_comes_once_per_month_and_reader(
    server: MailServer,
    line: Vll,
    ada: User,
    charlie: User,
) -> None:
    User.objects.filter(pk=ada.pk).update(email="ada@dairy.example")
    User.objects.filter(pk=charlie.pk).update(email="charlie@bakery.example")
    for _ in range(3):
        send_reports()
    assert sorted(to[0] for to in server.to) == ["ada@dairy.example", "alice@dairy.example"]
    assert len({message["Message-ID"] for message in server.took}) == 2


def test_who_does_not_want_it_gets_none(
    server: MailServer,
    line: Vll,
    alice: User,
) -> None:
    MailOptOut.objects.create(user=alice, group="reports", since=clock.now())
    send_reports()
    assert server.took == []


def test_a_month_from_before_there_were_reports_is_not_reported(server: MailServer, line: Vll) -> None:
    FrozenMonth.objects.update(frozen_at=clock.now() - timedelta(days=8))
    send_reports()
    assert not Mail.objects.exists()


def test_names_in_it_stay_names(server: MailServer, line: Vll) -> None:
    Vll.objects.update(description="<b>{{ x }}\r\nBcc: eve@evil.example")
    Customer.objects.update(name="{% now 'Y' %}<i>")
    send_reports()
    (message,) = server.took
    plain, html = parts(message)
    assert "<b>{{ x }} Bcc: eve@evil.example: 12 Mbit/s" in plain
    assert not {"b", "i"} & set(Reader(html).tags)
    assert message["Bcc"] is None
    assert "{% now 'Y' %}<i>" in message["Subject"]


def test_the_correction_of_an_earlier_release_applies(server: MailServer, line: Vll) -> None:
    freeze(line, "a", in_bps=10**7, out_bps=13 * 10**6, max_bps=13 * 10**6, missing=2, correction=1)
    send_reports()
    plain, _html = parts(server.took[0])
    assert "ZRH-AMS: 13 Mbit/s" in plain
