"""The query of a throughput graph."""

from datetime import UTC, datetime, timedelta
from typing import Any

from rest_framework import serializers

_DEFAULT_SPAN = timedelta(hours=1)
_LONGEST_SPAN = timedelta(days=400)


class InstantField(serializers.Field[Any, Any, Any, Any]):
    """Epoch seconds, or an ISO 8601 time with its zone."""

    default_error_messages = {"not_an_instant": "Write epoch seconds or an ISO 8601 time with a zone."}

    def to_internal_value(self, data: Any) -> datetime:
        try:
            if str(data).lstrip("-").isdigit():
                return datetime.fromtimestamp(int(data), tz=UTC)
            instant = datetime.fromisoformat(str(data).replace(" ", "+"))
        except (ValueError, OverflowError, OSError):
            self.fail("not_an_instant")
        if instant.tzinfo is None:
            self.fail("not_an_instant")
        return instant.astimezone(UTC)

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
