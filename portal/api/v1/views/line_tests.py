"""The tests of a line with frames."""

from uuid import UUID

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.v1.pagination import NewestVllFirst
from portal.api.v1.permissions import caller
from portal.api.v1.serializers.line_tests import LineTestSerializer
from portal.vll.models import LineTest, Vll


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


class LineTestView(APIView):
    """One test of a line."""

    permission_classes = [IsAuthenticated]

    @extend_schema(responses={200: LineTestSerializer})
    def get(self, request: Request, pk: UUID, test: UUID) -> Response:
        """One test of a line: sizes, frames sent and received each way, and who counted them."""
        return Response(LineTestSerializer(get_object_or_404(_tests(request, pk), pk=test)).data)


def _tests(request: Request, pk: UUID) -> QuerySet[LineTest]:
    vll = get_object_or_404(Vll.objects.visible_to(caller(request)), pk=pk)
    return LineTest.objects.filter(vll=vll)
