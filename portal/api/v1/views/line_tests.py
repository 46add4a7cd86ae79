"""The tests of a line with frames."""

from uuid import UUID

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from portal.api.v1.idempotency import once_per_key
from portal.api.v1.pagination import NewestVllFirst
from portal.api.v1.permission_classes import caller
from portal.api.v1.serializers.line_tests import LineTestRequestSerializer, LineTestSerializer
from portal.api.v1.serializers.strict_fields import validated
from portal.core import clock
from portal.vll.models import LineTest, Vll
from portal.vll.operations import line_test_call_off, line_test_order, line_test_schedule


class LineTestsView(generics.ListAPIView[LineTest]):
    """The tests of a line with frames, newest first; those that were not made say why."""

    permission_classes = [IsAuthenticated]
    queryset = LineTest.objects.none()
    serializer_class = LineTestSerializer
    pagination_class = NewestVllFirst

    def get_queryset(self) -> QuerySet[LineTest]:
        if "pk" not in self.kwargs:
            return LineTest.objects.none()
        return _tests(self.request, self.kwargs["pk"])

    @extend_schema(request=LineTestRequestSerializer, responses={202: LineTestSerializer})
    @once_per_key
    def post(self, request: Request, pk: UUID) -> Response:
        """Test a line in service with frames, now or `at` a time. This interrupts it for seconds.

        Its interruption is measured, and is maintenance rather than an outage.
        """
        vll, now = _vll(request, pk), clock.now()
        asked = validated(LineTestRequestSerializer, request.data)
        at, frame = asked.get("at"), asked.get("frame")
        if at is None:
            test = line_test_order(user=caller(request), vll=vll, frame=frame, now=now)
        else:
            test = line_test_schedule(user=caller(request), vll=vll, frame=frame, at=at, now=now)
        where = reverse("api-v1:line-test", args=[pk, test.pk], request=request)
        return Response(
            LineTestSerializer(test).data,
            status=status.HTTP_202_ACCEPTED,
            headers={"Location": where, "Retry-After": "1"},
        )


class LineTestView(APIView):
    """One test of a line."""

    permission_classes = [IsAuthenticated]

    @extend_schema(responses={200: LineTestSerializer})
    def get(self, request: Request, pk: UUID, test: UUID) -> Response:
        """One test of a line: sizes, frames sent and received each way, and who counted them."""
        return Response(LineTestSerializer(get_object_or_404(_tests(request, pk), pk=test)).data)

    @extend_schema(responses={204: None})
    @once_per_key
    def delete(self, request: Request, pk: UUID, test: UUID) -> Response:
        """Call a scheduled test off. One that has begun is stopped by cancelling its order."""
        found = get_object_or_404(_tests(request, pk), pk=test)
        line_test_call_off(user=caller(request), test=found, now=clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


def _tests(request: Request, pk: UUID) -> QuerySet[LineTest]:
    return LineTest.objects.filter(vll=_vll(request, pk))


def _vll(request: Request, pk: UUID) -> Vll:
    vll: Vll = get_object_or_404(Vll.objects.visible_to(caller(request)), pk=pk)
    return vll
