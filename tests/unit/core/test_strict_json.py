"""The strict reader of the documents that agents send."""

import json
from typing import Any

import pytest

from portal.core.strict_json import (
    Address,
    ForeignName,
    Invalid,
    Malformed,
    PrefixedAddress,
    PrintableText,
    reader,
)
from portal.telemetry.reported_counters import CounterReport

BOOT, VLL = "d3f9d3d2-61b6-4c5a-8f53-0d3e6b6a9f10", "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01"
COUNTS = {"in_bytes": -1, "in_packets": 2**63 - 1, "out_bytes": 0, "out_packets": 0}
END = {"vll": VLL, "end": "z", **COUNTS}
SAMPLE = {"seq": 1, "from_ms": 5, "to_ms": 6, "ends": [END]}
REPORT = {"boot_id": BOOT, "sent_ms": 7, "simulated": False, "dropped": 0, "samples": [SAMPLE]}
read = reader(CounterReport)


def wrong(body: bytes) -> tuple[str, str]:
    with pytest.raises(Invalid) as refused:
        read(body)
    assert refused.value.fault["detail"] in str(refused.value)
    return refused.value.fault["pointer"], refused.value.fault["code"]


def test_a_valid_document_is_read_unchanged() -> None:
    report = read(json.dumps(REPORT).encode())
    (end,) = report.samples[0].ends
    assert (report.boot_id, end.vll, end.side, end.in_bytes, end.policer) == (BOOT, VLL, "z", -1, None)


@pytest.mark.parametrize(
    ("change", "pointer", "code"),
    [
        ({"in_bytes": 2**63}, "in_bytes", "out_of_range"),
        ({"in_bytes": 10**30}, "in_bytes", "out_of_range"),
        ({"in_bytes": 1.0}, "in_bytes", "type"),
        ({"in_bytes": True}, "in_bytes", "type"),
        ({"in_bytes": "1"}, "in_bytes", "type"),
        ({"end": "b"}, "end", "unknown_value"),
        ({"end": 1}, "end", "type"),
        ({"vll": VLL.upper()}, "vll", "out_of_range"),
        ({"vll": VLL.replace("-", "")}, "vll", "out_of_range"),
        ({"vll": f"{VLL}\n"}, "vll", "out_of_range"),
        ({"vll": None}, "vll", "type"),
        ({"policer": {}}, "policer/conform_bytes", "missing"),
        ({"policer": []}, "policer", "type"),
        ({"a/b~` - at `$.c": 1}, "a~1b~0` - at `$.c", "unknown_field"),
    ],
)
def test_a_fault_is_named_by_its_pointer(change: dict[str, Any], pointer: str, code: str) -> None:
    sample = SAMPLE | {"ends": [END, END | change]}
    body = json.dumps(REPORT | {"samples": [SAMPLE, sample]}).encode()
    assert wrong(body) == (f"/samples/1/ends/1/{pointer}", code)


def test_a_number_with_too_many_digits_is_out_of_range() -> None:
    body = json.dumps(REPORT).replace('"sent_ms": 7', f'"sent_ms": {"1" * 10_000}').encode()
    assert wrong(body) == ("/sent_ms", "out_of_range")


def test_too_many_samples_are_out_of_range() -> None:
    samples = [SAMPLE | {"ends": []}] * 10_001
    assert wrong(json.dumps(REPORT | {"samples": samples}).encode()) == ("/samples", "out_of_range")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b'{"sent_ms": NaN}',
        b'{"boot_id": "\\ud800"}',
        json.dumps(REPORT).encode() + b" {}",
    ],
)
def test_a_body_that_is_not_json_is_malformed(body: bytes) -> None:
    with pytest.raises(Malformed):
        read(body)


def test_deep_nesting_is_refused() -> None:
    assert wrong(b"[" * 100_000) == ("", "type")


@pytest.mark.parametrize(
    ("kind", "written", "code"),
    [
        (Address, "fe80::1%eth0", "type"),
        (Address, "FD00::1", "type"),
        (Address, "10.0.0.1/32", "type"),
        (PrefixedAddress, "fe80::1%eth0/64", "type"),
        (PrefixedAddress, "10.0.0.1", "type"),
        (PrintableText, "\0", "out_of_range"),
        (PrintableText, "x" * 51, "out_of_range"),
    ],
)
def test_a_text_that_breaks_its_rule_is_refused_before_the_database(
    kind: type, written: str, code: str
) -> None:
    with pytest.raises(Invalid) as refused:
        reader(list[kind])(
            json.dumps(["10.0.0.1/32" if kind is PrefixedAddress else "10.0.0.1", written]).encode()
        )
    assert (refused.value.fault["pointer"], refused.value.fault["code"]) == ("/1", code)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (b"a\\u0000b", "a\ufffdb"),
        (b"\\ud800", "\ufffd"),
        (b"\\udc00\\ud800x", "\ufffd\ufffdx"),
        (b"\\ud83d\\ude00", "\U0001f600"),
        (b"\\\\ud800\\udfff", "\\ud800\ufffd"),
        (b"x" * 64, "x" * 63),
    ],
)
def test_foreign_text_is_made_printable_and_never_refused(written: bytes, shown: str) -> None:
    assert reader(list[ForeignName], of_others=True)(b'["%s"]' % written) == [shown]
