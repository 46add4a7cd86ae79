"""The queries of graphs and reports: time range, step and unit."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_noop as _
from rest_framework import serializers

from portal.telemetry.availability import PERIODS
from portal.telemetry.graph_units import Unit

UNITS = tuple(unit.name.lower() for unit in Unit)
_DEFAULT_SPAN = timedelta(hours=1)
_DEFAULT_LOSSES = timedelta(days=1)
_DEFAULT_REPORT = timedelta(days=30)
_LONGEST_SPAN = timedelta(days=400)
# Arithmetic with these limits stays within Python's calendar.
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(3000, 1, 1, tzinfo=UTC)


class InstantField(serializers.Field[Any, Any, Any, Any]):
    """Epoch seconds, or an ISO 8601 time with a zone."""

    default_error_messages = {
        "not_an_instant": gettext_lazy("Give epoch seconds, or an ISO 8601 time with a zone."),
        "out_of_range": gettext_lazy("Give a time from 1970 to 2999."),
    }

    def to_internal_value(self, data: Any) -> datetime:
        try:
            if str(data).lstrip("-").isdigit():
                instant = datetime.fromtimestamp(int(data), tz=UTC)
            else:
                instant = datetime.fromisoformat(str(data).replace(" ", "+"))
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
    """``from`` and ``to`` (default: the last hour), ``step`` in seconds (default: by the range), and
    ``unit``.
    """

    to = InstantField(required=False)
    step = serializers.IntegerField(required=False, min_value=1, max_value=86_400)
    unit = serializers.ChoiceField(choices=UNITS, required=False, default="bits")

    def get_fields(self) -> dict[str, Any]:
        # "from" cannot be a class attribute's name.
        return {"from": InstantField(required=False), **super().get_fields()}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        time_range = requested_range(attrs, self.context["now"], _DEFAULT_SPAN)
        return time_range | {"step_s": attrs.get("step"), "unit": Unit[attrs["unit"].upper()]}


class PortThroughputQuerySerializer(serializers.Serializer[Any]):
    """``from`` and ``to`` (default: the last day), and ``unit``. The portal chooses the step."""

    to = InstantField(required=False)
    unit = serializers.ChoiceField(choices=UNITS, required=False, default="bits")

    def get_fields(self) -> dict[str, Any]:
        return {"from": InstantField(required=False), **super().get_fields()}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        time_range = requested_range(attrs, self.context["now"], timedelta(days=1))
        return time_range | {"unit": Unit[attrs["unit"].upper()]}


class LossesQuerySerializer(serializers.Serializer[Any]):
    """``from`` and ``to`` (default: the last day), and ``step`` in seconds (default: by the range)."""

    to = InstantField(required=False)
    step = serializers.IntegerField(required=False, min_value=1, max_value=86_400)

    def get_fields(self) -> dict[str, Any]:
        return {"from": InstantField(required=False), **super().get_fields()}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        time_range = requested_range(attrs, self.context["now"], _DEFAULT_LOSSES)
        return time_range | {"step_s": attrs.get("step")}


class LatencyQuerySerializer(serializers.Serializer[Any]):
    """``from`` and ``to`` (default: the last hour), and ``step`` in seconds (default: by the range)."""

    to = InstantField(required=False)
    step = serializers.IntegerField(required=False, min_value=1, max_value=86_400)

    def get_fields(self) -> dict[str, Any]:
        return {"from": InstantField(required=False), **super().get_fields()}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        time_range = requested_range(attrs, self.context["now"], _DEFAULT_SPAN)
        return time_range | {"step_s": attrs.get("step")}


class RangeQuerySerializer(serializers.Serializer[Any]):
    """``from`` and ``to`` of a report (default: the last 30 days)."""

    to = InstantField(required=False)

    def get_fields(self) -> dict[str, Any]:
        return {"from": InstantField(required=False), **super().get_fields()}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        time_range = requested_range(attrs, self.context["now"], _DEFAULT_REPORT)
        return time_range | {name: value for name, value in attrs.items() if name not in ("from", "to")}


class AvailabilityQuerySerializer(RangeQuerySerializer):
    """A range, and ``period``: the length of the parts of the report."""

    period = serializers.ChoiceField(choices=PERIODS, required=False, default="day")


def requested_range(attrs: dict[str, Any], now: datetime, default: timedelta) -> dict[str, Any]:
    """Return ``since``, ``until`` and ``now``. Raises ValidationError for more than 400 days."""
    until = attrs.get("to", now)
    since = attrs.get("from", until - default)
    if until - since > _LONGEST_SPAN:
        raise serializers.ValidationError({"from": [_("At most 400 days fit one report.")]})
    return {"since": since, "until": until, "now": now}
