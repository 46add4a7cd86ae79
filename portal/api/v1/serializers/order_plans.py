"""The plan of a held order: what each router would do, as it goes out, and an approval as it comes in."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.api.v1.serializers.event_data import FactsField
from portal.api.v1.serializers.strict_fields import StrictSerializer, StrictUuidField
from portal.core import clock
from portal.vll.models import PlanResult
from portal.vll.operations.order_plan_preview import PlanState, state_of


class ApprovalSerializer(StrictSerializer):
    """``plan``: the one that was looked at; approving is refused when a router has moved on since."""

    plan = StrictUuidField(required=False, allow_null=True, default=None)


# A choice of types and not a list of them: generators of Go clients stop at such a list.
@extend_schema_field(
    {"oneOf": [{"type": "string"}, {"type": "integer"}, {"type": "boolean"}, {"type": "null"}]}
)
class ValueField(serializers.Field[Any, Any, Any, Any]):
    """Show the value of a member of an intent."""

    def to_representation(self, value: Any) -> Any:
        return value


class DifferenceSerializer(serializers.Serializer[Any]):
    """A member of the router's intent that would become another; null where there is none."""

    end = serializers.ChoiceField(choices=["a", "z"])
    field = serializers.CharField(help_text="As in the router's intent, such as transport.vni.")
    before = ValueField()
    after = ValueField()


class OperationSerializer(serializers.Serializer[Any]):
    """One thing that the router would do, in this order."""

    n = serializers.IntegerField(min_value=1)
    stage = serializers.CharField()
    end = serializers.CharField(help_text="The end that it is for.")
    message = serializers.CharField(help_text="The message of VPP's binary API.")
    cli = serializers.CharField(help_text="The equivalent line of VPP's CLI.")
    why = serializers.CharField()


class PlannedEndSerializer(serializers.Serializer[Any]):
    """An end that would be pending or in conflict."""

    end = serializers.ChoiceField(choices=["a", "z"])
    status = serializers.CharField()
    reason = FactsField()


class RouterPlanSerializer(serializers.Serializer[Any]):
    """One router's part; ``error`` says why it has none, or is empty."""

    router = serializers.CharField(source="name")
    generation = serializers.IntegerField(help_text="The router's when it was asked.")
    differences = DifferenceSerializer(many=True)
    operations = OperationSerializer(many=True)
    ends = PlannedEndSerializer(many=True)
    error = serializers.CharField(allow_blank=True)


class PlanSerializer(serializers.ModelSerializer[PlanResult]):
    """A plan: `underWay` while the routers are asked, `ready`, `stale` when one has moved on, or `lost`."""

    state = serializers.SerializerMethodField()
    refusal = FactsField(help_text="Why the order cannot be approved as it is.")
    routers = RouterPlanSerializer(many=True)

    class Meta:
        model = PlanResult
        fields = ["id", "state", "asked_by", "asked_at", "finished_at", "refusal", "routers"]

    @extend_schema_field({"type": "string", "enum": PlanState.values})
    def get_state(self, plan: PlanResult) -> str:
        return state_of(plan, now=clock.now())
