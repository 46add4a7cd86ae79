"""The diagnosis of a line, and trouble reports, as JSON."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.rest.access_control import IsNoc, caller
from portal.api.rest.idempotency import once_per_key
from portal.api.rest.lists import KeysetPagination
from portal.api.rest.request_bodies import FactsField, StrictCharField, StrictSerializer, validated
from portal.api.rest.views import VisibleListView
from portal.api.v1.lines.serializers import visible_line
from portal.core import clock
from portal.diagnosis.checks import CheckState
from portal.diagnosis.diagnosis import diagnosis_of
from portal.diagnosis.models import TroubleReport
from portal.diagnosis.trouble_reports import trouble_close, trouble_report


class VerdictSerializer(serializers.Serializer[Any]):
    """The first failed check in one sentence, with advice."""

    code = serializers.CharField(
        help_text="`in-order`, `not-known`, or the failure, with its end if any: `a-port-down`, `path-down`."
    )
    sentence = serializers.CharField()
    advice = serializers.CharField()


class CheckSerializer(serializers.Serializer[Any]):
    """One check along the line, from port to port."""

    code = serializers.CharField(help_text="For example `a_port_link`, `path` or `last_test`.")
    state = serializers.ChoiceField(choices=[state.value for state in CheckState])
    evidence = serializers.CharField()
    at = serializers.DateTimeField(
        allow_null=True, help_text="The time of the observation; null if there is none."
    )
    detail = serializers.CharField(help_text="Further facts for NOC staff; empty for others.")


class DiagnosisSerializer(serializers.Serializer[Any]):
    """Checks of the line by the last reports of its routers, and a verdict."""

    verdict = VerdictSerializer()
    checks = CheckSerializer(many=True)


class TroubleReportRequestSerializer(StrictSerializer):
    """A report to the NOC."""

    note = StrictCharField(
        required=False, allow_blank=True, max_length=2000, help_text="Your description of the trouble."
    )


class TroubleReportSerializer(serializers.ModelSerializer[TroubleReport]):
    """A report to the NOC, and its closing."""

    verdict = FactsField(
        source="finding.verdict", help_text="The verdict of the diagnosis at the time of the report."
    )

    class Meta:
        model = TroubleReport
        fields = ["id", "vll", "reported_by", "reported_at", "note", "verdict", "closed_by", "closed_at"]


class NewestReportFirst(KeysetPagination):
    ordering = ("-reported_at", "-id")


class DiagnosisView(APIView):
    permission_classes = [IsAuthenticated]

    @extend_schema(responses={200: DiagnosisSerializer})
    def get(self, request: Request, pk: UUID) -> Response:
        """The diagnosis of a line, from the last reports of its routers. The portal does not query the
        routers.
        """
        found = diagnosis_of(visible_line(request, pk), now=clock.now())
        return Response(DiagnosisSerializer(found.as_document(for_noc=caller(request).is_noc)).data)


class TroubleReportsView(VisibleListView[TroubleReport]):
    """The trouble reports about a line, newest first."""

    permission_classes = [IsAuthenticated]
    serializer_class = TroubleReportSerializer
    pagination_class = NewestReportFirst

    def visible_rows(self) -> QuerySet[TroubleReport]:
        return TroubleReport.objects.filter(vll=visible_line(self.request, self.kwargs["pk"]))

    @extend_schema(request=TroubleReportRequestSerializer, responses={201: TroubleReportSerializer})
    @once_per_key
    def post(self, request: Request, pk: UUID) -> Response:
        """Report trouble with a line to the NOC. The report contains the present diagnosis."""
        note = validated(TroubleReportRequestSerializer, request.data).get("note", "")
        report = trouble_report(
            user=caller(request), vll=visible_line(request, pk), note=note, now=clock.now()
        )
        return Response(TroubleReportSerializer(report).data, status=status.HTTP_201_CREATED)


class TroubleCloseView(APIView):
    permission_classes = [IsNoc]

    @extend_schema(request=None, responses={200: TroubleReportSerializer})
    @once_per_key
    def post(self, request: Request, pk: UUID) -> Response:
        """Close a trouble report. For NOC staff."""
        report = get_object_or_404(TroubleReport.objects.visible_to(caller(request)), pk=pk)
        closed = trouble_close(user=caller(request), report=report, now=clock.now())
        return Response(TroubleReportSerializer(closed).data)
