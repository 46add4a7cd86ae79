"""Limits of an agent's report of its router."""

import json
from pathlib import Path
from typing import Any

import pytest

from portal.core.clock import to_time
from portal.core.strict_json import Invalid, reader
from portal.inventory.reported_observation import ObservedReport

REPORT = Path(__file__).parents[2] / "contract" / "reports" / "observed.json"
LAST = 253_370_764_799_999  # in the year 9998
FREEZE = {"id": "0b9b2d7e-6c55-4b6b-8b2f-3d9a5f2f7c03", "by": "router", "reason": "", "over": False}
CONTEST = {"object": "loop0", "field": "tag", "desired": "", "actual": "x", "repairs": 3}
read = reader(ObservedReport)


def at(ms: int, report: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return each place with a time in reports, and a report with this time there."""
    end, path = report["ends"][0], report["paths"][0]
    return [
        ("/vpp/boot_ms", report | {"vpp": report["vpp"] | {"boot_ms": ms}}),
        ("/freeze/since_ms", report | {"freeze": FREEZE | {"since_ms": ms, "until_ms": 1}}),
        ("/freeze/until_ms", report | {"freeze": FREEZE | {"since_ms": 1, "until_ms": ms}}),
        ("/paths/0/since_ms", report | {"paths": [path | {"since_ms": ms}]}),
        ("/ends/0/path/since_ms", report | {"ends": [end | {"path": {"state": "up", "since_ms": ms}}]}),
        (
            "/ends/0/contested/0/since_ms",
            report | {"ends": [end | {"contested": [CONTEST | {"since_ms": ms}]}]},
        ),
        (
            "/ends/0/vlan_loss/since_ms",
            report | {"ends": [end | {"vlan_loss": {"state": "dropped", "since_ms": ms, "detail": "seen"}}]},
        ),
    ]


@pytest.mark.parametrize("which", range(7))
def test_a_time_beyond_the_calendar_is_refused_with_its_pointer(which: int) -> None:
    report = {name: each for name, each in json.loads(REPORT.read_text()).items() if name != "schema"}
    pointer, beyond = at(LAST + 1, report)[which]
    with pytest.raises(Invalid) as refused:
        read(json.dumps(beyond).encode())
    assert (refused.value.fault["pointer"], refused.value.fault["code"]) == (pointer, "out_of_range")
    read(json.dumps(at(LAST, report)[which][1]).encode())
    assert to_time(LAST).year == 9998
