"""Numbers, rates and sizes as people write them: each has one value, or is refused with its readings."""

import argparse
import contextlib
from decimal import Decimal

import pytest
from django.core.exceptions import ImproperlyConfigured
from hypothesis import given
from hypothesis import strategies as st

from devstack import traffic
from portal.core.environment import Environment
from portal.core.errors import DomainError
from portal.core.quantities import (
    UNKNOWN,
    QuantityAmbiguous,
    RateUnreadable,
    read_number,
    read_rate,
    read_size,
    whole_rate,
    written_back,
)

SIGNS = (".", ",", UNKNOWN)


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize(
    ("written", "bps"),
    [
        ("1.5G", 1_500_000_000),
        ("1,5 Gbit/s", 1_500_000_000),
        ("50M", 50_000_000),
        ("50 m", 50_000_000),
        ("50 Mbps", 50_000_000),
        ("50Mb/s", 50_000_000),
        ("50 MBit/s", 50_000_000),
        ("50 mbits", 50_000_000),
        ("50 Mbyte/s", 400_000_000),
        ("1\N{NO-BREAK SPACE}000\N{NARROW NO-BREAK SPACE}000", 1_000_000),
        ("1\N{RIGHT SINGLE QUOTATION MARK}000k", 1_000_000),
        ("1_000", 1000),
        ("1,000,000", 1_000_000),
        ("1.000.000,0", 1_000_000),
        ("0.125 k", 125),
        ("1000.000", 1000),
        ("100000000", 100_000_000),
        (".5k", 500),
    ],
)
def test_a_rate_is_read_in_any_language(sign: str, written: str, bps: int) -> None:
    assert read_rate(written, sign=sign).of(1) == bps


@pytest.mark.parametrize(
    ("written", "sign", "readings"),
    [
        ("1.000", ".", ["1", "1000"]),
        ("1.000", ",", ["1", "1000"]),
        ("1,000", UNKNOWN, ["1", "1000"]),
        ("1.234G", ".", ["1.2340 G", "1234 G"]),
        ("50 MB/s", ".", ["50 Mbit/s", "400 Mbit/s"]),
        ("50 MBPS", ",", ["50 Mbit/s", "400 Mbit/s"]),
    ],
)
def test_a_rate_with_two_readings_names_both(written: str, sign: str, readings: list[str]) -> None:
    with pytest.raises(QuantityAmbiguous) as refused:
        read_rate(written, sign=sign)
    assert refused.value.readings == readings
    assert all(reading in refused.value.sentence for reading in [written, *readings])
    # Each of the readings is accepted if a person enters it.
    assert len({read_rate(reading, sign=sign).of(1) for reading in readings}) == 2


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize(
    "written",
    [
        "",
        "fast",
        "1..2",
        "1.2.3",
        "12,34,5",
        "1,000,00",
        "1 00",
        "1e9",
        "1E+10",
        "5 Q",
        "٣",
        "1" * 41,
        "1 2 3",
        "0x10",
    ],
)
def test_a_text_without_a_rate_is_refused(sign: str, written: str) -> None:
    with pytest.raises(DomainError) as refused:
        read_rate(written, sign=sign)
    assert refused.value.code == "rate-unreadable"


def test_sizes_count_bytes() -> None:
    assert [read_size(text).of(1) for text in ("9000", "9 kB", "64 KiB", "1 MiB", "1500 octets", "2M")] == [
        *(9000, 9000, 65_536, 2**20, 1500, 2_000_000)
    ]
    with pytest.raises(QuantityAmbiguous) as refused:
        read_size("64 kb")
    assert refused.value.readings == ["64 kB", "8 kB"]


@given(number=st.decimals(min_value=0, max_value=10**12, places=6), sign=st.sampled_from(".,"))
def test_a_shown_number_is_read_as_the_same_number(number: Decimal, sign: str) -> None:
    text = f"{number:f}".rstrip("0").rstrip(".")
    assert read_number(written_back(text, sign=sign), sign=sign) == number


@given(st.text(alphabet="0123456789., '_kMGbBits/p-+eE", max_size=20), st.sampled_from(SIGNS))
def test_any_text_is_a_whole_rate_or_refused(text: str, sign: str) -> None:
    with contextlib.suppress(RateUnreadable, QuantityAmbiguous):
        assert whole_rate(text, sign=sign) >= 0


def test_a_setting_may_have_a_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGLINE_MIN_CIR_BPS", "2M")
    assert Environment().rate("LONGLINE_MIN_CIR_BPS", default=1) == 2_000_000
    monkeypatch.delenv("LONGLINE_MIN_CIR_BPS")
    assert Environment().rate("LONGLINE_MIN_CIR_BPS", default=1) == 1
    monkeypatch.setenv("LONGLINE_MIN_CIR_BPS", "1.000")
    with pytest.raises(ImproperlyConfigured, match="LONGLINE_MIN_CIR_BPS"):
        Environment().rate("LONGLINE_MIN_CIR_BPS", default=1)


def test_a_command_takes_a_unit() -> None:
    assert traffic._rate("5M") == 5_000_000
    with pytest.raises(argparse.ArgumentTypeError):
        traffic._rate("5.000")
