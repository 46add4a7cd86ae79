"""Throughput: serializers and schemas. Responses consist of rows of numbers, so the schemas are explicit."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_noop as _
from rest_framework import serializers

from portal.core.whole_number import whole_number
from portal.telemetry.availability import PERIODS
from portal.telemetry.buckets import Unit
from portal.telemetry.router_losses import BUFFERS, OF_INTERFACES, OF_ROUTERS

_END = {
    "type": "array",
    "description": "Start of the bucket (epoch seconds), in, out; null if nothing was counted.",
    "items": {
        "type": "array",
        "items": {"type": ["number", "null"]},
        "minItems": 3,
        "maxItems": 3,
        "example": [1_790_000_100, 412_000_000.0, 398_500_000.0],
    },
}
_P95_END = {
    "type": "object",
    "description": "95th percentiles of 5-minute buckets, and the number of missing buckets.",
}
THROUGHPUT: dict[str, Any] = {
    "type": "object",
    "required": ["step_s", "unit", "a_end", "z_end", "p95", "missing"],
    "properties": {
        "step_s": {"type": "integer", "minimum": 1, "description": "Length of a bucket in seconds."},
        "unit": {"enum": [unit.value for unit in Unit]},
        "a_end": _END,
        "z_end": _END,
        "p95": {
            "type": "object",
            "required": ["a_end", "z_end"],
            "properties": {"a_end": _P95_END, "z_end": _P95_END},
        },
        "missing": {
            "type": "integer",
            "minimum": 0,
            "description": "The number of buckets in which an end was not counted.",
        },
        "simulated": {"type": "boolean", "description": "Whether any value comes from a stand-in for VPP."},
    },
}
PORT_THROUGHPUT: dict[str, Any] = {
    "type": "object",
    "required": ["step_s", "unit", "port", "lines", "missing", "simulated"],
    "properties": {
        "step_s": {"type": "integer", "minimum": 300, "description": "Length of a bucket in seconds."},
        "unit": {"enum": [unit.value for unit in Unit]},
        "port": _END,
        "lines": {"type": "integer", "minimum": 0, "description": "The number of ends of lines in the sum."},
        "missing": {
            "type": "integer",
            "minimum": 0,
            "description": "The number of buckets in which no line was counted.",
        },
        "simulated": {"type": "boolean", "description": "Whether any value comes from a stand-in for VPP."},
    },
}
INSTANT = {
    "oneOf": [{"type": "integer", "minimum": 0}, {"type": "string", "format": "date-time"}],
    "description": "Epoch seconds, or an ISO 8601 time with a zone.",
}


_COUNT = {"type": "integer", "minimum": 0}
_SECONDS = {"type": "number", "minimum": 0}
_RATE = {"type": ["integer", "null"], "minimum": 0, "description": "bit/s; null if nothing was counted."}
_RATIO = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
_INSTANT = {"type": "string", "format": "date-time"}


def _record(**members: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(members), "properties": members}


_P95 = {"in": _RATE, "out": _RATE, "max": _RATE, "counted": _COUNT, "missing": _COUNT}
PERCENTILES = _record(
    results={
        "type": "array",
        "items": _record(
            month={"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}$", "example": "2026-10"},
            unit={"type": "string", "const": "bit/s"},
            frozen_at=_INSTANT,
            simulated={"type": "boolean"},
            a_end=_record(**_P95),
            z_end=_record(**_P95),
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


def _series(columns: tuple[str, ...], **more: Any) -> dict[str, Any]:
    count = {"type": ["integer", "null"], "minimum": 0}
    totals = {column: {**count, "description": _MEANINGS[column]} for column in columns}
    members = {
        **more,
        "columns": {"type": "array", "items": {"enum": list(columns)}},
        "totals": {"type": "object", "required": list(totals), "properties": totals},
        "points": {
            "type": "array",
            "description": "Start of the bucket (epoch seconds), then the columns; null if not counted.",
            "items": {
                "type": "array",
                "items": {"type": ["number", "null"]},
                "minItems": 1 + len(columns),
                "maxItems": 1 + len(columns),
                "example": [1_790_000_100, *([0] * len(columns))],
            },
        },
    }
    return {"type": "object", "required": list(members), "properties": members}


_NAME = {"type": "string", "description": "The name of the interface."}
_LINK = {"type": ["integer", "null"], "description": "The id of the interface's backbone link."}
_STEP = {"type": "integer", "minimum": 1, "description": "Length of a bucket in seconds."}
_SIMULATED = {"type": "boolean", "description": "Whether any value comes from a stand-in for VPP."}


def _response(**members: Any) -> dict[str, Any]:
    members = {"step_s": _STEP, **members, "simulated": _SIMULATED}
    return {"type": "object", "required": list(members), "properties": members}


ROUTER_LOSSES = _response(
    router=_series((*OF_ROUTERS, *BUFFERS)),
    interfaces={"type": "array", "items": _series(OF_INTERFACES, name=_NAME, link=_LINK)},
)
LINK_LOSSES = _response(
    a_side=_series(OF_INTERFACES, name=_NAME),
    z_side=_series(OF_INTERFACES, name=_NAME),
)


UNITS = tuple(unit.name.lower() for unit in Unit)
_DEFAULT_SPAN = timedelta(hours=1)
_DEFAULT_LOSSES = timedelta(days=1)
_DEFAULT_REPORT = timedelta(days=30)
_LONGEST_SPAN = timedelta(days=400)
# Times outside these limits are refused, so that arithmetic with times stays within Python's calendar.
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(3000, 1, 1, tzinfo=UTC)


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


class ThroughputQuerySerializer(serializers.Serializer[Any]):
    """The query of a throughput graph: ``from``, ``to``, ``step`` in seconds, and ``unit``.

    The default range is the last hour. The default step is the finest available step with at most 1,000
    points.
    """

    to = InstantField(required=False)
    step = serializers.IntegerField(required=False, min_value=1, max_value=86_400)
    unit = serializers.ChoiceField(choices=UNITS, required=False, default="bits")

    def get_fields(self) -> dict[str, Any]:
        # "from" is a Python keyword, so the class body cannot define an attribute with this name.
        return {"from": InstantField(required=False), **super().get_fields()}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        time_range = requested_range(attrs, self.context["now"], _DEFAULT_SPAN)
        return time_range | {"step_s": attrs.get("step"), "unit": Unit[attrs["unit"].upper()]}


class PortThroughputQuerySerializer(serializers.Serializer[Any]):
    """The query of a port's throughput: ``from``, ``to`` and ``unit``. The default range is the last day.

    A client cannot choose the step.
    """

    to = InstantField(required=False)
    unit = serializers.ChoiceField(choices=UNITS, required=False, default="bits")

    def get_fields(self) -> dict[str, Any]:
        return {"from": InstantField(required=False), **super().get_fields()}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        time_range = requested_range(attrs, self.context["now"], timedelta(days=1))
        return time_range | {"unit": Unit[attrs["unit"].upper()]}


class LossesQuerySerializer(serializers.Serializer[Any]):
    """The query of frame losses: ``from``, ``to``, and ``step`` in seconds.

    The default range is the last day. The default step is the finest available step with at most 1,000
    points.
    """

    to = InstantField(required=False)
    step = serializers.IntegerField(required=False, min_value=1, max_value=86_400)

    def get_fields(self) -> dict[str, Any]:
        return {"from": InstantField(required=False), **super().get_fields()}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        time_range = requested_range(attrs, self.context["now"], _DEFAULT_LOSSES)
        return time_range | {"step_s": attrs.get("step")}


class LatencyQuerySerializer(serializers.Serializer[Any]):
    """The query of round-trip times: ``from``, ``to``, and ``step`` in seconds.

    The default range is the last hour. The default step is the finest available step with at most 1,000
    points.
    """

    to = InstantField(required=False)
    step = serializers.IntegerField(required=False, min_value=1, max_value=86_400)

    def get_fields(self) -> dict[str, Any]:
        return {"from": InstantField(required=False), **super().get_fields()}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        time_range = requested_range(attrs, self.context["now"], _DEFAULT_SPAN)
        return time_range | {"step_s": attrs.get("step")}


class RangeQuerySerializer(serializers.Serializer[Any]):
    """The query of a report: ``from`` and ``to``. The default range is the last 30 days."""

    to = InstantField(required=False)

    def get_fields(self) -> dict[str, Any]:
        return {"from": InstantField(required=False), **super().get_fields()}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        time_range = requested_range(attrs, self.context["now"], _DEFAULT_REPORT)
        return time_range | {name: value for name, value in attrs.items() if name not in ("from", "to")}


class AvailabilityQuerySerializer(RangeQuerySerializer):
    """The query of an availability report: a range, and ``period``, the length of each part of the report."""

    period = serializers.ChoiceField(choices=PERIODS, required=False, default="day")


def requested_range(attrs: dict[str, Any], now: datetime, default: timedelta) -> dict[str, Any]:
    """Return ``since``, ``until`` and ``now``. Raises ValidationError if the range exceeds 400 days.

    ``until`` is ``now`` by default. ``since`` is the time ``default`` before ``until`` by default.
    """
    until = attrs.get("to", now)
    since = attrs.get("from", until - default)
    if until - since > _LONGEST_SPAN:
        raise serializers.ValidationError({"from": [_("At most 400 days fit one report.")]})
    return {"since": since, "until": until, "now": now}
