"""Tests of a line with frames, as the API shows them."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.vll.line_test_sentences import line_test_sentence
from portal.vll.models import LineTest


class FrameCountSerializer(serializers.Serializer[Any]):
    """Frames of one size in one direction; ``fragmented``: the underlay cut them in pieces."""

    frame = serializers.IntegerField(min_value=64, max_value=65535, help_text="Bytes, without FCS.")
    sent = serializers.IntegerField(min_value=0)
    received = serializers.IntegerField(min_value=0)
    fragmented = serializers.BooleanField()


class DirectionsSerializer(serializers.Serializer[Any]):
    """The newest count of each size."""

    a_to_z = FrameCountSerializer(many=True)
    z_to_a = FrameCountSerializer(many=True)


class TestedRouterSerializer(serializers.Serializer[Any]):
    """The software that sent and counted."""

    router = serializers.CharField()
    vpp = serializers.CharField()
    agent = serializers.CharField()


class TestedRoutersSerializer(serializers.Serializer[Any]):
    """Both ends; null where nothing was sent."""

    a = TestedRouterSerializer()
    z = TestedRouterSerializer()


class LineTestSerializer(serializers.ModelSerializer[LineTest]):
    """A test, from when it was asked for; ``reason`` says why it did not pass or was not made."""

    reason = serializers.SerializerMethodField()
    message = serializers.SerializerMethodField(
        help_text="The outcome as a sentence; null until there is one."
    )
    directions = serializers.SerializerMethodField()
    routers = serializers.SerializerMethodField()

    class Meta:
        model = LineTest
        fields = [
            "id",
            "order",
            "revision",
            "state",
            "reason",
            "message",
            "frame",
            "largest_passed",
            "directions",
            "routers",
            "created_at",
            "finished_at",
        ]

    @extend_schema_field(serializers.ChoiceField(choices=LineTest.Reason.choices, allow_null=True))
    def get_reason(self, test: LineTest) -> str | None:
        return test.reason or None

    def get_message(self, test: LineTest) -> str | None:
        return None if test.state == LineTest.State.WAITING else line_test_sentence(test)

    @extend_schema_field(DirectionsSerializer)
    def get_directions(self, test: LineTest) -> dict[str, Any]:
        return {"a_to_z": [], "z_to_a": [], **test.directions}

    @extend_schema_field(TestedRoutersSerializer(allow_null=True))
    def get_routers(self, test: LineTest) -> dict[str, Any] | None:
        routers: dict[str, Any] | None = test.conditions.get("routers")
        return routers
