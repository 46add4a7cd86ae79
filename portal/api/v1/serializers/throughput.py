"""The query of a throughput graph."""

from datetime import UTC, datetime, timedelta
from typing import Any

from rest_framework import serializers

_DEFAULT_SPAN = timedelta(hours=1)
_LONGEST_SPAN = timedelta(days=400)
# Far enough from the ends of Python's calendar for all arithmetic.
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(3000, 1, 1, tzinfo=UTC)


class InstantField(serializers.Field[Any, Any, Any, Any]):
    """Epoch seconds, or an ISO 8601 time with its zone."""

    default_error_messages = {
        "not_an_instant": "Write epoch seconds or an ISO 8601 time with a zone.",
        "out_of_range": "Write a time from 1970 to 2999.",
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
    """``from`` and ``to`` (default: the last hour) and ``step`` in seconds (default: what fits the span)."""

    to = InstantField(required=False)
    step = serializers.IntegerField(required=False, min_value=1, max_value=86_400)

    def get_fields(self) -> dict[str, Any]:
        # "from" cannot be a class attribute's name.
        return {"from": InstantField(required=False), **super().get_fields()}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        now = self.context["now"]
        until = attrs.get("to", now)
        since = attrs.get("from", until - _DEFAULT_SPAN)
        if until - since > _LONGEST_SPAN:
            raise serializers.ValidationError({"from": ["At most 400 days fit one graph."]})
        return {"since": since, "until": until, "step_s": attrs.get("step"), "now": now}
