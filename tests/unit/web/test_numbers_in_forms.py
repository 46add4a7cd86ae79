"""Numbers in forms: a form reads the intended number, or names the possible ones."""

from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.utils import translation

from portal.core.quantities import WholeNumberField
from portal.web.fields.numbers import NumberField, SizeField
from portal.web.lines.bandwidth_form import BandwidthForm, rate_initial
from portal.web.noc.inventory.inventory_forms import DegreesField, MbitField


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


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize(
    ("typed", "readings"),
    [
        ("1.000", "1 1000"),
        ("10.000", "10 10000"),
        ("-47.377", {"en": "-47.3770 -47377", "de": "-47,377 -47377"}),
    ],
)
def test_a_point_before_three_digits_is_ambiguous(language: str, typed: str, readings: Any) -> None:
    with translation.override(language), pytest.raises(ValidationError) as refused:
        NumberField().clean(typed)
    [error] = refused.value.error_list
    assert error.code == "ambiguous"
    expected = readings if isinstance(readings, str) else readings[language]
    assert all(reading in error.messages[0] for reading in [typed, *expected.split()])


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("1.000.000", "1000000"),
        ("1.000,5", "1000.5"),
        ("1,000.5", "1000.5"),
        ("1'000", "1000"),
        ("2,5", "2.5"),
    ],
)
def test_separators_that_have_one_meaning_are_read(language: str, typed: str, meant: str) -> None:
    assert read(language, typed) == Decimal(meant)


def test_a_comma_before_three_digits_is_a_thousand_in_english() -> None:
    assert read("en", "1,000") == 1000


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize(
    ("typed", "bps"),
    [
        ("1.5G", 1_500_000_000),
        ("50M", 50_000_000),
        ("50 Mbps", 50_000_000),
        ("50", 50_000_000),
        ("2000 kbit/s", 2_000_000),
        ("0", 0),
    ],
)
def test_a_rate_may_have_its_unit(language: str, typed: str, bps: int) -> None:
    with translation.override(language):
        form = BandwidthForm({"cir": typed, "cir_unit": "1000000"})
        assert form.is_valid(), form.errors
        assert form.cleaned_data["cir_bps"] == bps
        assert MbitField().clean(typed) == bps


@pytest.mark.parametrize("typed", ["fast", "-5", "0.0000001", "50 MB/s", "1.000", "1e30", "9999999999T"])
def test_a_missing_or_ambiguous_rate_is_refused_with_a_text(typed: str) -> None:
    form = BandwidthForm({"cir": typed, "cir_unit": "1000000"})
    assert not form.is_valid()
    assert typed in form.errors["cir"][0]


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_size_may_have_its_unit(language: str) -> None:
    for typed, size in (("9000", 9000), (" 9 000 ", 9000), ("64 KiB", 65_536), ("1500 bytes", 1500)):
        assert read(language, typed, SizeField()) == size
    for typed in ("9.000", "64 kb", "0.5", "large", "9000 bit"):
        refusal(language, typed, SizeField())
    assert read("en", "9,000", SizeField()) == 9000
    refusal("de", "9,000", SizeField())


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_whole_number_is_digits(language: str) -> None:
    assert read(language, " 9000 ", WholeNumberField()) == 9000
    for typed in ("9.000", "9,000", "9 000", "1e3"):
        refusal(language, typed, WholeNumberField())


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("bps", [1, 1_500_000, 10**9, 2_500_000_000, 1_234_000])
def test_a_form_accepts_its_own_output(language: str, bps: int) -> None:
    with translation.override(language):
        shown = BandwidthForm(initial=rate_initial("cir", bps))
        sent = {name: shown[name].value() for name in ("cir", "cir_unit")}
        form = BandwidthForm(sent)
        assert form.is_valid(), form.errors
        assert form.cleaned_data["cir_bps"] == bps
        assert MbitField().clean(MbitField().prepare_value(bps)) == bps


@pytest.mark.parametrize("language", ["en", "de"])
def test_degrees_have_no_thousands(language: str) -> None:
    assert read(language, "47.377", DegreesField()) == Decimal("47.377")


def test_degrees_are_shown_as_they_are_typed() -> None:
    with translation.override("de"):
        assert DegreesField().prepare_value(Decimal("47.376900")) == "47,3769"
        assert DegreesField().clean("47,3769") == Decimal("47.3769")
