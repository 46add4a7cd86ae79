"""Activation tests of a line (ITU-T Y.1564), as JSON."""

from datetime import timedelta
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.api.v1.serializers.strict_fields import MAX_SAFE_INTEGER, StrictIntegerField, StrictSerializer
from portal.vll.models import ActivationTest
from portal.vll.sentences import activation_test_sentence


class FrameCountSerializer(serializers.Serializer[Any]):
    """Frames of one size in one direction. ``fragmented``: the underlay fragmented them."""

    frame = serializers.IntegerField(min_value=64, max_value=65535, help_text="Bytes, without FCS.")
    sent = serializers.IntegerField(min_value=0)
    received = serializers.IntegerField(min_value=0)
    fragmented = serializers.BooleanField()


class DirectionsSerializer(serializers.Serializer[Any]):
    """The newest counts of each size, by direction."""

    a_to_z = FrameCountSerializer(many=True)
    z_to_a = FrameCountSerializer(many=True)


class TestedRouterSerializer(serializers.Serializer[Any]):
    """A router and the software versions that sent and counted the frames."""

    router = serializers.CharField()
    port = serializers.CharField(help_text="The interface at the end of the line.")
    vpp = serializers.CharField()
    agent = serializers.CharField()


class TestedRoutersSerializer(serializers.Serializer[Any]):
    """The routers of both ends; null if no frames were sent."""

    a = TestedRouterSerializer()
    z = TestedRouterSerializer()


class RoundTripSerializer(serializers.Serializer[Any]):
    """Round-trip times of small packets, in microseconds. The router of the A end sends the packets."""

    sent = serializers.IntegerField(min_value=1)
    received = serializers.IntegerField(min_value=1)
    min = serializers.IntegerField(min_value=0)
    avg = serializers.IntegerField(min_value=0)
    max = serializers.IntegerField(min_value=0)


class TestedLinkSerializer(serializers.Serializer[Any]):
    """A backbone link on the path. ``backup``: the path uses the link only after a failure."""

    link = serializers.CharField()
    ip_mtu = serializers.IntegerField(allow_null=True, help_text="Bytes; null if unknown.")
    backup = serializers.BooleanField()


class TestedPathSerializer(serializers.Serializer[Any]):
    """The path of the test through the underlay, as the portal calculated it. IP MTUs in bytes."""

    required_ip_mtu = serializers.IntegerField(help_text="The IP MTU that the largest frame needs.")
    ip_mtu = serializers.IntegerField(
        allow_null=True, help_text="The smallest IP MTU of the links; null if unknown."
    )
    links = TestedLinkSerializer(many=True)


class ActivationTestRequestSerializer(StrictSerializer):
    """A request for an activation test, which interrupts the line for seconds."""

    at = serializers.DateTimeField(
        required=False, allow_null=True, help_text="The time to begin, at most 90 days ahead. Default: now."
    )
    frame = StrictIntegerField(
        required=False,
        allow_null=True,
        min_value=0,
        max_value=MAX_SAFE_INTEGER,
        help_text="The largest frame to send, in bytes without FCS. Default: the largest frame that the line"
        " must carry.",
    )


class ActivationTestSerializer(serializers.ModelSerializer[ActivationTest]):
    """An activation test. ``reason``: why the test did not pass or was not made; otherwise null."""

    reason = serializers.SerializerMethodField()
    message = serializers.SerializerMethodField(
        help_text="The result as a sentence; null before the test has ended."
    )
    transport = serializers.SerializerMethodField()
    directions = serializers.SerializerMethodField()
    round_trip_us = serializers.SerializerMethodField()
    path = serializers.SerializerMethodField()
    routers = serializers.SerializerMethodField()
    interruption_ms = serializers.SerializerMethodField(
        help_text="The upper bound of the line's interruption. Null: no interruption, or it is not over yet."
    )

    class Meta:
        model = ActivationTest
        fields = [
            "id",
            "order",
            "revision",
            "state",
            "reason",
            "message",
            "frame",
            "largest_passed",
            "transport",
            "directions",
            "round_trip_us",
            "path",
            "routers",
            "interruption_ms",
            "asked_by",
            "created_at",
            "scheduled_for",
            "started_at",
            "finished_at",
        ]
        extra_kwargs = {"asked_by": {"source": "requested_by"}}

    @extend_schema_field(serializers.ChoiceField(choices=ActivationTest.Reason.choices, allow_null=True))
    def get_reason(self, test: ActivationTest) -> str | None:
        return test.reason or None

    def get_message(self, test: ActivationTest) -> str | None:
        return None if test.state in ActivationTest.OPEN else activation_test_sentence(test)

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_transport(self, test: ActivationTest) -> str | None:
        transport: str | None = test.conditions.get("transport")
        return transport

    @extend_schema_field(DirectionsSerializer)
    def get_directions(self, test: ActivationTest) -> dict[str, Any]:
        return {"a_to_z": [], "z_to_a": [], **test.directions}

    @extend_schema_field(RoundTripSerializer(allow_null=True))
    def get_round_trip_us(self, test: ActivationTest) -> dict[str, Any] | None:
        timed: dict[str, Any] | None = test.round_trip_us
        return timed

    @extend_schema_field(TestedPathSerializer(allow_null=True))
    def get_path(self, test: ActivationTest) -> dict[str, Any] | None:
        path: dict[str, Any] | None = test.conditions.get("path")
        return path

    @extend_schema_field(TestedRoutersSerializer(allow_null=True))
    def get_routers(self, test: ActivationTest) -> dict[str, Any] | None:
        routers: dict[str, Any] | None = test.conditions.get("routers")
        return routers

    @extend_schema_field(serializers.IntegerField(allow_null=True, min_value=0))
    def get_interruption_ms(self, test: ActivationTest) -> int | None:
        interruption = test.interruption
        return None if interruption is None else interruption // timedelta(milliseconds=1)


class LineTestRequestSerializer(ActivationTestRequestSerializer):
    """A request for an activation test at the deprecated path. Generated clients use the schema's name."""


class LineTestSerializer(ActivationTestSerializer):
    """An activation test at the deprecated path. Generated clients use the schema's name."""
