"""The diagnosis of a line, and trouble reports, as JSON."""

from typing import Any

from rest_framework import serializers

from portal.api.v1.serializers.event_data import FactsField
from portal.api.v1.serializers.strict_fields import StrictCharField, StrictSerializer
from portal.diagnosis.checks import CheckState
from portal.diagnosis.models import TroubleReport


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
