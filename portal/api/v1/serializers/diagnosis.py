"""The diagnosis of a line and reports of trouble, as the API shows them."""

from typing import Any

from rest_framework import serializers

from portal.api.v1.serializers.event_data import FactsField
from portal.api.v1.serializers.strict_fields import StrictCharField, StrictSerializer
from portal.diagnosis.checks import CheckState
from portal.diagnosis.models import TroubleReport


class VerdictSerializer(serializers.Serializer[Any]):
    """The first broken check in one sentence, and what to do."""

    code = serializers.CharField(
        help_text="`in-order`, `not-known`, or what is broken, with its end: `a-port-down`, `path-down`."
    )
    sentence = serializers.CharField()
    advice = serializers.CharField()


class CheckSerializer(serializers.Serializer[Any]):
    """One link of the chain from port to port."""

    code = serializers.CharField(help_text="Such as `a_port_link`, `path`, `last_test`.")
    state = serializers.ChoiceField(choices=[state.value for state in CheckState])
    evidence = serializers.CharField()
    at = serializers.DateTimeField(allow_null=True, help_text="As of when; null: nobody says anything.")
    detail = serializers.CharField(help_text="What else the NOC reads; empty for others.")


class DiagnosisSerializer(serializers.Serializer[Any]):
    """What speaks for and against the line, by what its routers reported last."""

    verdict = VerdictSerializer()
    checks = CheckSerializer(many=True)


class TroubleReportRequestSerializer(StrictSerializer):
    """Telling the NOC."""

    note = StrictCharField(
        required=False, allow_blank=True, max_length=2000, help_text="What you see, in your own words."
    )


class TroubleReportSerializer(serializers.ModelSerializer[TroubleReport]):
    """What the NOC was told, and whether it has closed it."""

    verdict = FactsField(source="finding.verdict", help_text="The diagnosis of that moment.")

    class Meta:
        model = TroubleReport
        fields = ["id", "vll", "reported_by", "reported_at", "note", "verdict", "closed_by", "closed_at"]
