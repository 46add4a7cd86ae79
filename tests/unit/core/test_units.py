"""Numbers in the notation of the reader's language."""

import pytest
from django.utils import translation

from portal.core.reader_texts import (
    count_text,
    decimal_text,
    grouped_text,
    measured_text,
    part_text,
    rate_text,
)
from portal.telemetry.availability import availability_text


@pytest.mark.parametrize(
    ("english", "german", "text"),
    [
        ("1.5 Gbit/s", "1,5 Gbit/s", lambda: rate_text(1_500_000_000)),
        ("5.14 Mbit/s", "5,14 Mbit/s", lambda: measured_text(5_138_000)),
        ("0.013 %", "0,013 %", lambda: part_text(0.000121)),
        ("1\N{NO-BREAK SPACE}234", "1\N{NO-BREAK SPACE}234", lambda: count_text(1234)),
        ("1,518", "1.518", lambda: grouped_text(1518)),
        ("0.81", "0,81", lambda: decimal_text(0.812, 2)),
        ("99.988 %", "99,988 %", lambda: availability_text(0.99988, 1)),
    ],
)
def test_each_language_has_its_own_notation(english: str, german: str, text: object) -> None:
    assert callable(text)
    assert text() == english
    with translation.override("de"):
        assert text() == german
