"""The statements that PostgreSQL plans once, and those that it plans with the values at hand."""

import pytest
from django.db import connection

from portal.accounts.models import User
from portal.vll.models import Vll
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.web_pages.browser import signed_in

pytestmark = pytest.mark.django_db

OFTEN = 6


def planned_once() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements")
        return {statement for (statement,) in cursor.fetchall()}


@pytest.fixture
def vll(isp: Isp, alice: User) -> Vll:
    return order(isp, alice).vll


def test_what_a_page_reads_is_planned_with_its_values(alice: User, vll: Vll) -> None:
    browser, before = signed_in(alice), planned_once()
    for _ in range(OFTEN):
        assert browser.get(f"/vlls/{vll.pk}/").status_code == 200
    assert planned_once() == before


def test_other_repeated_statements_are_planned_once(vll: Vll) -> None:
    before = planned_once()
    for _ in range(OFTEN):
        Vll.objects.get(pk=vll.pk)
    assert [statement for statement in planned_once() - before if "vll_vll" in statement]
