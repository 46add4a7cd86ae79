"""Reading the documents of numbers that agents send."""

import json
from typing import Any

import pytest

from portal.api.agent.strict_json import Errors, Malformed
from portal.api.agent.strict_structs import struct
from portal.telemetry.counter_report import CounterReport

BOOT, VLL = "d3f9d3d2-61b6-4c5a-8f53-0d3e6b6a9f10", "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01"
COUNTS = {"in_bytes": -1, "in_packets": 2**63 - 1, "out_bytes": 0, "out_packets": 0}
END = {"vll": VLL, "end": "z", **COUNTS}
SAMPLE = {"seq": 1, "from_ms": 5, "to_ms": 6, "ends": [END]}
REPORT = {"boot_id": BOOT, "sent_ms": 7, "simulated": False, "dropped": 0, "samples": [SAMPLE]}
read = struct(CounterReport)


def wrong(report: dict[str, Any]) -> list[tuple[str, str]]:
    errors = Errors()
    assert read(json.dumps(report).encode(), errors) is None
    return [(error["pointer"], error["code"]) for error in errors]


def test_what_is_right_is_read_as_it_is() -> None:
    errors = Errors()
    report = read(json.dumps(REPORT).encode(), errors)
    (end,) = report.samples[0].ends
    assert not errors
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
def test_what_is_wrong_is_named_by_its_pointer(change: dict[str, Any], pointer: str, code: str) -> None:
    sample = SAMPLE | {"ends": [END, END | change]}
    assert wrong(REPORT | {"samples": [SAMPLE, sample]}) == [(f"/samples/1/ends/1/{pointer}", code)]


def test_a_number_of_more_digits_than_anything_holds_is_out_of_range() -> None:
    errors = Errors()
    assert (
        read(json.dumps(REPORT).replace('"sent_ms": 7', f'"sent_ms": {"1" * 10_000}').encode(), errors)
        is None
    )
    assert [(error["pointer"], error["code"]) for error in errors] == [("/sent_ms", "out_of_range")]


def test_more_samples_than_are_taken_at_a_time_are_out_of_range() -> None:
    assert wrong(REPORT | {"samples": [SAMPLE | {"ends": []}] * 10_001}) == [("/samples", "out_of_range")]


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
def test_what_is_no_json_is_malformed(body: bytes) -> None:
    with pytest.raises(Malformed):
        read(body, Errors())


def test_what_is_nested_beyond_reason_is_refused() -> None:
    errors = Errors()
    assert read(b"[" * 100_000, errors) is None
    assert errors[0]["code"] == "type"
