"""Activation tests: /vlls/{id}/activation-tests and its former path /tests."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import serializers, status
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.rest.access_control import caller
from portal.api.rest.idempotency import once_per_key
from portal.api.rest.lists import NewestVllFirst
from portal.api.rest.request_bodies import MAX_SAFE_INTEGER, StrictIntegerField, StrictSerializer, validated
from portal.api.rest.views import VisibleListView, located
from portal.api.v1.lines.serializers import visible_line
from portal.core import clock
from portal.vll.models import ActivationTest
from portal.vll.operations.activation_test_on_demand import (
    activation_test_call_off,
    activation_test_order,
    activation_test_schedule,
)
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


class ActivationTestsView(VisibleListView[ActivationTest]):
    """The activation tests of a line, newest first. The list includes tests that were not made, with the
    reason.
    """

    permission_classes = [IsAuthenticated]
    serializer_class = ActivationTestSerializer
    pagination_class = NewestVllFirst
    # The name of the path of one test, for the header Location.
    path_of_one = "activation-test"

    def visible_rows(self) -> QuerySet[ActivationTest]:
        return _tests(self.request, self.kwargs["pk"])

    @extend_schema(request=ActivationTestRequestSerializer, responses={202: ActivationTestSerializer})
    @once_per_key
    def post(self, request: Request, pk: UUID) -> Response:
        """Request an activation test of a line in service, now or at the time `at`. The test interrupts the
        line for seconds.

        The portal measures the interruption and counts it as maintenance, not as an outage.
        """
        vll, now = visible_line(request, pk), clock.now()
        body = validated(ActivationTestRequestSerializer, request.data)
        at, frame = body.get("at"), body.get("frame")
        if at is None:
            test = activation_test_order(user=caller(request), vll=vll, frame=frame, now=now)
        else:
            test = activation_test_schedule(user=caller(request), vll=vll, frame=frame, at=at, now=now)
        document = ActivationTestSerializer(test).data
        return located(document, self.path_of_one, pk, test.pk, request=request, code=202)


class ActivationTestView(APIView):
    """One activation test of a line."""

    permission_classes = [IsAuthenticated]

    @extend_schema(responses={200: ActivationTestSerializer})
    def get(self, request: Request, pk: UUID, test: UUID) -> Response:
        """One activation test: the numbers of sent and received frames by size and direction, and the routers
        with their software.
        """
        return Response(ActivationTestSerializer(get_object_or_404(_tests(request, pk), pk=test)).data)

    @extend_schema(responses={204: None})
    @once_per_key
    def delete(self, request: Request, pk: UUID, test: UUID) -> Response:
        """Cancel a scheduled activation test. To stop a test that has begun, cancel its order."""
        found = get_object_or_404(_tests(request, pk), pk=test)
        activation_test_call_off(user=caller(request), test=found, now=clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


@extend_schema_view(
    get=extend_schema(
        description="The activation tests of a line. Deprecated: use `/api/v1/vlls/{id}/activation-tests`.",
        deprecated=True,
    ),
    post=extend_schema(
        description="Request an activation test. Deprecated: use `/api/v1/vlls/{id}/activation-tests`.",
        request=LineTestRequestSerializer,
        responses={202: LineTestSerializer},
        deprecated=True,
    ),
)
class LineTestsView(ActivationTestsView):
    """The same resource at the path that release 0.1.0 has."""

    permission_classes = [IsAuthenticated]
    serializer_class = LineTestSerializer
    path_of_one = "line-test"


@extend_schema_view(
    get=extend_schema(
        description="One activation test. Deprecated: use `/api/v1/vlls/{id}/activation-tests/{test}`.",
        responses={200: LineTestSerializer},
        deprecated=True,
    ),
    delete=extend_schema(
        description="Call off a scheduled activation test. Deprecated: use"
        " `/api/v1/vlls/{id}/activation-tests/{test}`.",
        responses={204: None},
        deprecated=True,
    ),
)
class LineTestView(ActivationTestView):
    """The same resource at the path that release 0.1.0 has."""

    permission_classes = [IsAuthenticated]


def _tests(request: Request, pk: UUID) -> QuerySet[ActivationTest]:
    return ActivationTest.objects.filter(vll=visible_line(request, pk))
