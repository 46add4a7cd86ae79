"""What somebody types is the number that they mean, or they are asked again."""

from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.utils import translation

from portal.web.forms.bandwidth import BandwidthForm, rate_initial
from portal.web.forms.inventory import DegreesField, MbitField
from portal.web.forms.numbers import NumberField, WholeNumberField


def read(language: str, typed: str, field: Any = None) -> Any:
    with translation.override(language):
        return (field or NumberField()).clean(typed)


def refusal(language: str, typed: str, field: Any = None) -> str:
    with translation.override(language), pytest.raises(ValidationError) as refused:
        (field or NumberField()).clean(typed)
    with translation.override("en"):
        return str(refused.value.messages[0])


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("2,5", "2.5"),
        ("2.5", "2.5"),
        (" 1,000 ", "1"),
        ("1000", "1000"),
        ("0.125", "0.125"),
        ("-0,5", "-0.5"),
    ],
)
def test_a_german_writes_decimals_with_a_comma(typed: str, meant: str) -> None:
    assert read("de", typed) == Decimal(meant)


@pytest.mark.parametrize("typed", ["1.000", "10.000", "1.000.000", "1.000,5", "47.377"])
def test_a_point_that_may_part_thousands_is_asked_about(typed: str) -> None:
    whole = typed.replace(".", "")
    assert refusal("de", typed).startswith(f"{typed} lässt sich auf zwei Arten lesen. Geben Sie {whole} ein")


def test_english_stays_as_it_was() -> None:
    assert read("en", "1.000") == 1
    refusal("en", "2,5")


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_whole_number_is_digits(language: str) -> None:
    assert read(language, " 9000 ", WholeNumberField()) == 9000
    for typed in ("9.000", "9,000", "9 000", "1e3"):
        refusal(language, typed, WholeNumberField())


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("bps", [1, 1_500_000, 10**9, 2_500_000_000, 1_234_000])
def test_what_a_form_shows_it_takes_back(language: str, bps: int) -> None:
    with translation.override(language):
        shown = BandwidthForm(initial=rate_initial("cir", bps))
        sent = {name: shown[name].value() for name in ("cir", "cir_unit")}
        form = BandwidthForm(sent)
        assert form.is_valid(), form.errors
        assert form.cleaned_data["cir_bps"] == bps
        assert MbitField().clean(MbitField().prepare_value(bps)) == bps


def test_degrees_are_shown_as_they_are_typed() -> None:
    with translation.override("de"):
        assert DegreesField().prepare_value(Decimal("47.376900")) == "47,3769"
        assert DegreesField().clean("47,3769") == Decimal("47.3769")
