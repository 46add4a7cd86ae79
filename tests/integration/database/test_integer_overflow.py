"""PostgreSQL types: a number that does not fit is refused. It used to be cut to its low bits."""

import os
import subprocess
import sys
from typing import Any

import pytest
from django.db import DataError, transaction
from django.db.models import F, SmallIntegerField, Value

from portal.inventory.models import Port
from tests.integration.isp import GBIT, Isp

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 6 * GBIT, 2**32 + 1])
def test_untyped_number_beyond_32_bits_in_an_expression_is_refused(isp: Isp, number: int) -> None:
    with pytest.raises(DataError, match="name the type"), transaction.atomic():
        Port.objects.update(bookable_bps=F("bookable_bps") + number)
    assert set(Port.objects.values_list("bookable_bps", flat=True)) == {10 * GBIT}


@pytest.mark.parametrize("number", [2**31 - 1, -(2**31), 0])
def test_number_that_fits_is_stored_unchanged(isp: Isp, number: int) -> None:
    Port.objects.update(bookable_bps=F("bookable_bps") + number)
    assert set(Port.objects.values_list("bookable_bps", flat=True)) == {10 * GBIT + number}


def test_number_beyond_16_or_64_bits_is_refused(isp: Isp) -> None:
    short: Any = Value(70_000, output_field=SmallIntegerField())
    with pytest.raises(DataError), transaction.atomic():
        list(Port.objects.annotate(short=short))
    with pytest.raises((DataError, OverflowError)), transaction.atomic():
        Port.objects.update(bookable_bps=2**63)


_SCRIPT = """
import django; django.setup()
from django.db import connection
from psycopg.types.numeric import Int2, Int4
from psycopg.errors import NumericValueOutOfRange
for number in (Int4(6 * 10**9), Int2(70_000)):
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT %s + 0::bigint", [number])
            print(cursor.fetchone())
    except Exception as error:
        print(type(error.__cause__).__name__)
"""


@pytest.mark.parametrize("settings", ["portal.settings", "portal.processes.settings_agent_api"])
def test_each_process_refuses_from_its_first_connection(settings: str) -> None:
    process = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": settings},
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout.split() == ["NumericValueOutOfRange"] * 2
