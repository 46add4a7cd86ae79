"""The shapes of a VLL's reports."""

from typing import Any

_COUNT = {"type": "integer", "minimum": 0}
_SECONDS = {"type": "number", "minimum": 0}
_RATE = {"type": ["integer", "null"], "minimum": 0, "description": "bit/s; null where nothing was counted."}
_RATIO = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
_INSTANT = {"type": "string", "format": "date-time"}


def _record(**members: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(members), "properties": members}


_P95 = {"in": _RATE, "out": _RATE, "max": _RATE, "counted": _COUNT, "missing": _COUNT}
_UNDECIDED = {
    **_COUNT,
    "description": "5 minutes in quarantine because a router's clock was wrong: the NOC may still add them.",
}
PERCENTILES = _record(
    results={
        "type": "array",
        "items": _record(
            month={"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}$", "example": "2026-10"},
            unit={"type": "string", "const": "bit/s"},
            frozen_at=_INSTANT,
            simulated={"type": "boolean"},
            a_end=_record(**_P95, undecided=_UNDECIDED),
            z_end=_record(**_P95, undecided=_UNDECIDED),
            earlier={
                "type": "array",
                "description": "What stood here before each correction, the newest first; mostly none.",
                "items": _record(
                    frozen_at=_INSTANT,
                    corrected_at=_INSTANT,
                    simulated={"type": "boolean"},
                    a_end=_record(**_P95),
                    z_end=_record(**_P95),
                ),
            },
        ),
    }
)
_TIMES = {
    "up_s": _SECONDS,
    "down_s": _SECONDS,
    "unknown_s": _SECONDS,
    "maintenance_s": {
        **_SECONDS,
        "description": "While tests that were asked for interrupted it; in none of the others.",
    },
    "availability": {**_RATIO, "description": "up / (up + down); null where nothing is known."},
    "known_ratio": {**_RATIO, "description": "Of how much of its time in service that is said."},
}
AVAILABILITY = _record(
    period={"enum": ["day", "month"]},
    **_TIMES,
    periods={"type": "array", "items": _record(start=_INSTANT, **_TIMES)},
)
_DIRECTION = _record(
    sent=_COUNT,
    policed={
        **_COUNT,
        "description": "Of those sent, dropped by the line's own policer: no loss (MEF 10.4).",
    },
    delivered=_COUNT,
    loss_ratio=_RATIO,
    bound_ratio={
        **_RATIO,
        "description": "What may look like loss because the ends are not read at the same instant: below it"
        " `loss_ratio` only says that the loss is less than this.",
    },
)
_DROPPED = {**_COUNT, "type": ["integer", "null"]}
_DROPS = _record(
    dropped_in={
        **_DROPPED,
        "description": "Frames from the customer that its router dropped, those beyond the profile left out;"
        " null where nothing was counted.",
    },
    dropped_out={
        **_DROPPED,
        "description": "Frames that came for the customer and that its router could not hand over.",
    },
)
LOSS = _record(
    step_s=_COUNT,
    compared=_COUNT,
    missing=_COUNT,
    a_to_z=_DIRECTION,
    z_to_a=_DIRECTION,
    a_end=_DROPS,
    z_end=_DROPS,
    simulated={"type": "boolean"},
)
_COLOUR = {**_record(bytes=_COUNT, packets=_COUNT), "type": ["object", "null"]}
_POLICED = _record(
    counted_s={**_COUNT, "description": "Seconds for which this end's policer was counted."},
    conform={**_COLOUR, "description": "Within CIR and CBS: forwarded. Null where nothing was counted."},
    exceed={**_COLOUR, "description": "Within EIR and EBS: forwarded."},
    violate={**_COLOUR, "description": "Beyond the profile: dropped."},
    violate_ratio=_RATIO,
)
POLICING = _record(step_s=_COUNT, a_end=_POLICED, z_end=_POLICED, simulated={"type": "boolean"})
