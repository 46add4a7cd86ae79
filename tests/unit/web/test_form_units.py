"""Form fields with another unit than the operation: a round trip loses nothing."""

import pytest
from django.core.exceptions import ValidationError

from portal.web.noc.inventory.inventory_forms import DaysField, MbitField


@pytest.mark.parametrize("seconds", [0, 1, 60, 3600, 86_399, 86_400, 7 * 86_400, 90 * 86_400 - 1])
def test_seconds_come_back_from_days(seconds: int) -> None:
    days = DaysField()
    assert days.clean(days.prepare_value(seconds)) == seconds


def test_days_and_mbits_are_written_without_padding() -> None:
    assert [DaysField().prepare_value(86_400 * days) for days in (0, 1, 10)] == ["0", "1", "10"]
    assert [MbitField().prepare_value(bps) for bps in (10**9, 1_500_000, 1)] == ["1000", "1.5", "0.000001"]


@pytest.mark.parametrize("typed", ["-1", "a week", "0.0000001"])
def test_other_texts_than_a_number_of_days_are_refused(typed: str) -> None:
    with pytest.raises(ValidationError):
        DaysField().clean(typed)
