"""The queries of graphs and reports: time range, step and unit.

If a query has no step, the portal chooses the finest available step with at most 1,000 points
(``automatic_step``).
"""

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
