"""Figures of lines, ports, routers and links: the schemas of responses, and the queries.

Responses consist of rows of numbers, so the schemas are explicit.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_noop as _
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from portal.api.openapi.schemas import (
    COUNT,
    COUNT_OR_NULL,
    FLAG,
    INSTANT,
    Schema,
    about,
    array,
    or_null,
    record,
)
from portal.core import clock
from portal.core.quantities import whole_number
from portal.telemetry.availability import PERIODS
from portal.telemetry.buckets import Unit
from portal.telemetry.router_losses import BUFFERS, OF_INTERFACES, OF_ROUTERS


def _rows(description: str, example: list[float], *, kind: str = "number") -> Schema:
    """Return the schema of a list of rows, each with as many numbers as ``example``."""
    row = {
        **array({"type": [kind, "null"]}),
        "minItems": len(example),
        "maxItems": len(example),
        "example": example,
    }
    return {"type": "array", "description": description, "items": row}


_SECONDS: Schema = {"type": "number", "minimum": 0}
_RATE: Schema = about(COUNT_OR_NULL, "bit/s; null if nothing was counted.")
_RATIO: Schema = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
_STEP: Schema = {"type": "integer", "minimum": 1, "description": "Length of a bucket in seconds."}
_SIMULATED: Schema = {"type": "boolean", "description": "Whether any value comes from a stand-in for VPP."}
_UNIT: Schema = {"enum": [unit.value for unit in Unit]}
_END = _rows(
    "Start of the bucket (epoch seconds), in, out; null if nothing was counted.",
    [1_790_000_100, 412_000_000.0, 398_500_000.0],
)
_P95_END: Schema = {
    "type": "object",
    "description": "95th percentiles of 5-minute buckets, and the number of missing buckets.",
}
THROUGHPUT = {
    **record(
        step_s=_STEP,
        unit=_UNIT,
        a_end=_END,
        z_end=_END,
        p95=record(a_end=_P95_END, z_end=_P95_END),
        missing=about(COUNT, "The number of buckets in which an end was not counted."),
        simulated=_SIMULATED,
    ),
    "required": ["step_s", "unit", "a_end", "z_end", "p95", "missing"],
}
PORT_THROUGHPUT = record(
    step_s={**_STEP, "minimum": 300},
    unit=_UNIT,
    port=_END,
    lines=about(COUNT, "The number of ends of lines in the sum."),
    missing=about(COUNT, "The number of buckets in which no line was counted."),
    simulated=_SIMULATED,
)
LATENCY = record(
    step_s=_STEP,
    round_trips=_rows(
        "Start of the bucket (epoch seconds); shortest, mean and longest round-trip time"
        " in µs, null if no packet returned; number of lost packets, null if none was sent.",
        [1_790_000_100, 710, 805, 1200, 0],
        kind="integer",
    ),
    missing=about(COUNT, "The number of buckets in which the line was in service and no packet was sent."),
    simulated=_SIMULATED,
)
_P95 = {"in": _RATE, "out": _RATE, "max": _RATE, "counted": COUNT, "missing": COUNT}
PERCENTILES = record(
    results=array(
        record(
            month={"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}$", "example": "2026-10"},
            unit={"type": "string", "const": "bit/s"},
            frozen_at=INSTANT,
            simulated=FLAG,
            a_end=record(**_P95),
            z_end=record(**_P95),
        )
    )
)
_TIMES = {
    "up_s": _SECONDS,
    "down_s": _SECONDS,
    "unknown_s": _SECONDS,
    "maintenance_s": about(
        _SECONDS,
        "Seconds during which requested activation tests interrupted the line. The other times"
        " do not include them.",
    ),
    "availability": about(_RATIO, "up / (up + down); null if both are 0."),
    "known_ratio": about(
        _RATIO, "The share of the time in service with a known status; null if never in service."
    ),
}
AVAILABILITY = record(
    period={"enum": ["day", "month"]},
    **_TIMES,
    periods=array(record(start=INSTANT, **_TIMES)),
)
_DIRECTION = record(
    sent=COUNT,
    policed=about(COUNT, "The sent frames that the line's own policer dropped. They are no loss (MEF 10.4)."),
    delivered=COUNT,
    loss_ratio=_RATIO,
    bound_ratio=about(
        _RATIO,
        "The error of `loss_ratio`, because the ends are not read at the same moment. If"
        " `loss_ratio` is smaller, only one fact is known: the loss is less than `bound_ratio`.",
    ),
)
_DROPS = record(
    dropped_in=about(
        COUNT_OR_NULL,
        "Frames from the customer that the router dropped, without those beyond the bandwidth"
        " profile; null if nothing was counted.",
    ),
    dropped_out=about(
        COUNT_OR_NULL,
        "Frames for the customer that the router could not send out of the port;"
        " null if nothing was counted.",
    ),
)
LOSS = record(
    step_s=COUNT,
    compared=COUNT,
    missing=COUNT,
    a_to_z=_DIRECTION,
    z_to_a=_DIRECTION,
    a_end=_DROPS,
    z_end=_DROPS,
    simulated=FLAG,
)
_COLOUR = or_null(record(bytes=COUNT, packets=COUNT))
_POLICED = record(
    counted_s=about(COUNT, "Seconds during which this end's policer was counted."),
    conform=about(_COLOUR, "Within CIR and CBS: forwarded. Null if nothing was counted."),
    exceed=about(_COLOUR, "Within EIR and EBS: forwarded."),
    violate=about(_COLOUR, "Beyond the profile: dropped."),
    violate_ratio=_RATIO,
)
POLICING = record(step_s=COUNT, a_end=_POLICED, z_end=_POLICED, simulated=FLAG)

_MEANINGS = {
    "rx_packets": "Frames received.",
    "tx_packets": "Frames sent.",
    "drops": "Received frames that VPP dropped, for any reason.",
    "rx_miss": "Frames that the network card missed.",
    "rx_errors": "Frames that arrived damaged.",
    "rx_no_buffer": "Frames that VPP had no free buffer for.",
    "tx_errors": "Frames that could not be sent.",
    "no_such_tunnel": "Packets for a tunnel that the router does not have.",
    "fragments_sent": "Fragments that the router sent.",
    "reassembled": "Packets to the router that it reassembled.",
    "reassembly_failed": "Packets to the router that it could not reassemble.",
    "buffers": "VPP's buffers, in all pools.",
    "buffers_free": "The lowest number of free buffers.",
}


def _series(columns: tuple[str, ...], **more: Schema) -> Schema:
    return record(
        **more,
        columns=array({"enum": list(columns)}),
        totals=record(**{each: {**COUNT_OR_NULL, "description": _MEANINGS[each]} for each in columns}),
        points=_rows(
            "Start of the bucket (epoch seconds), then the columns; null if not counted.",
            [1_790_000_100, *([0] * len(columns))],
        ),
    )


_NAME: Schema = {"type": "string", "description": "The name of the interface."}
_LINK: Schema = {"type": ["integer", "null"], "description": "The id of the interface's backbone link."}
ROUTER_LOSSES = record(
    step_s=_STEP,
    router=_series((*OF_ROUTERS, *BUFFERS)),
    interfaces=array(_series(OF_INTERFACES, name=_NAME, link=_LINK)),
    simulated=_SIMULATED,
)
_SIDE = _series(OF_INTERFACES, name=_NAME)
LINK_LOSSES = record(step_s=_STEP, a_side=_SIDE, z_side=_SIDE, simulated=_SIMULATED)

UNITS = tuple(unit.name.lower() for unit in Unit)
_LONGEST_SPAN = timedelta(days=400)
# Times outside these limits are refused, so that arithmetic with times stays within Python's calendar.
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(3000, 1, 1, tzinfo=UTC)
_WHEN = {
    "oneOf": [{"type": "integer", "minimum": 0}, {"type": "string", "format": "date-time"}],
    "description": "Epoch seconds, or an ISO 8601 time with a zone.",
}


def parameters(span: str, *, steps: Sequence[int] = (), unit: bool = False) -> list[OpenApiParameter]:
    """Return the parameters of a query of figures. ``span``: the default range, in words."""
    found = [
        OpenApiParameter("from", _WHEN, description=f"Default: {span} before `to`."),
        OpenApiParameter("to", _WHEN, description="Default: now."),
    ]
    if steps:
        step = "Seconds; by default chosen by the range."
        found.append(OpenApiParameter("step", int, enum=steps, description=step))
    if unit:
        counted = "The unit of the counts; default: bits."
        found.append(OpenApiParameter("unit", str, enum=UNITS, description=counted))
    return found


class InstantField(serializers.Field[Any, Any, Any, Any]):
    """Epoch seconds, or an ISO 8601 time with a zone."""

    default_error_messages = {
        "not_an_instant": gettext_lazy("Give epoch seconds, or an ISO 8601 time with a zone."),
        "out_of_range": gettext_lazy("Give a time from 1970 to 2999."),
    }

    def to_internal_value(self, data: Any) -> datetime:
        try:
            text = str(data)
            seconds = whole_number(text.removeprefix("-"), most=10**15)
            if seconds is not None:
                instant = datetime.fromtimestamp(-seconds if text.startswith("-") else seconds, tz=UTC)
            else:
                instant = datetime.fromisoformat(text.replace(" ", "+"))
            if instant.tzinfo is None:
                self.fail("not_an_instant")
            instant = instant.astimezone(UTC)
        except (ValueError, OverflowError, OSError):
            self.fail("not_an_instant")
        if not _FIRST <= instant <= _LAST:
            self.fail("out_of_range")
        return instant

    def to_representation(self, value: datetime) -> int:
        return int(value.timestamp())


class UnitField(serializers.ChoiceField):
    """A unit by its name."""

    def __init__(self) -> None:
        default: Any = Unit.BITS
        super().__init__(choices=UNITS, default=default)

    def to_internal_value(self, data: Any) -> Any:
        return Unit[super().to_internal_value(data).upper()]


class RangeQuery(serializers.Serializer[Any]):
    """The query of a report: ``from`` and ``to``. The default range is the last 30 days."""

    default_span = timedelta(days=30)
    to = InstantField(required=False)

    def get_fields(self) -> dict[str, Any]:
        # "from" is a Python keyword, so the class body cannot define an attribute with this name.
        return {"from": InstantField(required=False), **super().get_fields()}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Return ``since``, ``until``, ``now`` and others. Raises ValidationError for more than 400 days."""
        now = clock.now()
        until = attrs.pop("to", now)
        since = attrs.pop("from", until - self.default_span)
        if until - since > _LONGEST_SPAN:
            raise serializers.ValidationError({"from": [_("At most 400 days fit one report.")]})
        return {"since": since, "until": until, "now": now, **attrs}


class AvailabilityQuery(RangeQuery):
    """The query of an availability report: a range, and ``period``, the length of each part of the report."""

    period = serializers.ChoiceField(choices=PERIODS, required=False, default="day")


class PortThroughputQuery(RangeQuery):
    """The query of a port's throughput. The default range is the last day. The step cannot be chosen."""

    default_span = timedelta(days=1)
    unit = UnitField()


class LossesQuery(RangeQuery):
    """The query of frame losses. The default range is the last day.

    ``step`` is in seconds. The default step is the finest available step with at most 1,000 points.
    """

    default_span = timedelta(days=1)
    step = serializers.IntegerField(source="step_s", default=None, min_value=1, max_value=86_400)


class LatencyQuery(LossesQuery):
    """The query of round-trip times. The default range is the last hour."""

    default_span = timedelta(hours=1)


class ThroughputQuery(LatencyQuery):
    """The query of a throughput graph. The default range is the last hour."""

    unit = UnitField()
