"""The schemas of a VLL's reports."""

from typing import Any

_COUNT = {"type": "integer", "minimum": 0}
_SECONDS = {"type": "number", "minimum": 0}
_RATE = {"type": ["integer", "null"], "minimum": 0, "description": "bit/s; null if nothing was counted."}
_RATIO = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
_INSTANT = {"type": "string", "format": "date-time"}


def _record(**members: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(members), "properties": members}


_P95 = {"in": _RATE, "out": _RATE, "max": _RATE, "counted": _COUNT, "missing": _COUNT}
_UNDECIDED = {
    **_COUNT,
    "description": "The number of 5-minute intervals in quarantine because a router's clock was wrong."
    " The NOC may still add them.",
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
                "description": "The values before each correction, newest first; normally empty.",
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
        "description": "Seconds during which requested activation tests interrupted the line. The other times"
        " do not include them.",
    },
    "availability": {**_RATIO, "description": "up / (up + down); null if both are 0."},
    "known_ratio": {
        **_RATIO,
        "description": "The share of the time in service with a known status; null if never in service.",
    },
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
        "description": "The sent frames that the line's own policer dropped. They are no loss (MEF 10.4).",
    },
    delivered=_COUNT,
    loss_ratio=_RATIO,
    bound_ratio={
        **_RATIO,
        "description": "The error of `loss_ratio`, because the ends are not read at the same moment. If"
        " `loss_ratio` is smaller, only one fact is known: the loss is less than `bound_ratio`.",
    },
)
_DROPPED = {**_COUNT, "type": ["integer", "null"]}
_DROPS = _record(
    dropped_in={
        **_DROPPED,
        "description": "Frames from the customer that the router dropped, without those beyond the bandwidth"
        " profile; null if nothing was counted.",
    },
    dropped_out={
        **_DROPPED,
        "description": "Frames for the customer that the router could not send out of the port;"
        " null if nothing was counted.",
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
    counted_s={**_COUNT, "description": "Seconds during which this end's policer was counted."},
    conform={**_COLOUR, "description": "Within CIR and CBS: forwarded. Null if nothing was counted."},
    exceed={**_COLOUR, "description": "Within EIR and EBS: forwarded."},
    violate={**_COLOUR, "description": "Beyond the profile: dropped."},
    violate_ratio=_RATIO,
)
POLICING = _record(step_s=_COUNT, a_end=_POLICED, z_end=_POLICED, simulated={"type": "boolean"})
