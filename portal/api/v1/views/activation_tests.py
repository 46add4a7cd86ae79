"""Activation tests of a line (ITU-T Y.1564)."""

from uuid import UUID

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, status
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from portal.api.v1.idempotency import once_per_key
from portal.api.v1.pagination import NewestVllFirst
from portal.api.v1.permission_classes import caller
from portal.api.v1.serializers.activation_tests import (
    ActivationTestRequestSerializer,
    ActivationTestSerializer,
    LineTestRequestSerializer,
    LineTestSerializer,
)
from portal.api.v1.serializers.strict_fields import validated
from portal.core import clock
from portal.vll.models import ActivationTest, Vll
from portal.vll.operations import activation_test_call_off, activation_test_order, activation_test_schedule


class ActivationTestsView(generics.ListAPIView[ActivationTest]):
    """The activation tests of a line, newest first. The list includes tests that were not made, with the
    reason.
    """

    permission_classes = [IsAuthenticated]
    queryset = ActivationTest.objects.none()
    serializer_class = ActivationTestSerializer
    pagination_class = NewestVllFirst
    # The name of the path of one test, for the header Location.
    path_of_one = "api-v1:activation-test"

    def get_queryset(self) -> QuerySet[ActivationTest]:
        if "pk" not in self.kwargs:
            return ActivationTest.objects.none()
        return _tests(self.request, self.kwargs["pk"])

    @extend_schema(request=ActivationTestRequestSerializer, responses={202: ActivationTestSerializer})
    @once_per_key
    def post(self, request: Request, pk: UUID) -> Response:
        """Request an activation test of a line in service, now or at the time `at`. The test interrupts the
        line for seconds.

        The portal measures the interruption and counts it as maintenance, not as an outage.
        """
        vll, now = _vll(request, pk), clock.now()
        body = validated(ActivationTestRequestSerializer, request.data)
        at, frame = body.get("at"), body.get("frame")
        if at is None:
            test = activation_test_order(user=caller(request), vll=vll, frame=frame, now=now)
        else:
            test = activation_test_schedule(user=caller(request), vll=vll, frame=frame, at=at, now=now)
        where = reverse(self.path_of_one, args=[pk, test.pk], request=request)
        return Response(
            ActivationTestSerializer(test).data,
            status=status.HTTP_202_ACCEPTED,
            headers={"Location": where, "Retry-After": "1"},
        )


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
    path_of_one = "api-v1:line-test"


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
    return ActivationTest.objects.filter(vll=_vll(request, pk))


def _vll(request: Request, pk: UUID) -> Vll:
    vll: Vll = get_object_or_404(Vll.objects.visible_to(caller(request)), pk=pk)
    return vll
