"""The plan of an order pending approval (the operations of each router), and the request to approve it."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.api.rest.event_data import FactsField
from portal.api.rest.strict_fields import StrictSerializer, StrictUuidField
from portal.core import clock
from portal.vll.models import PlanResult
from portal.vll.operations.order_approval import PlanState, state_of


class ApprovalSerializer(StrictSerializer):
    """An approval. ``plan``: the id of the reviewed plan. The approval is refused if a router has changed
    since the plan was made.
    """

    plan = StrictUuidField(required=False, allow_null=True, default=None)


# Use ``oneOf`` and not a list of types, because generators of Go clients reject a list of types.
@extend_schema_field(
    {"oneOf": [{"type": "string"}, {"type": "integer"}, {"type": "boolean"}, {"type": "null"}]}
)
class ValueField(serializers.Field[Any, Any, Any, Any]):
    """The value of a member of an intent."""

    def to_representation(self, value: Any) -> Any:
        return value


class DifferenceSerializer(serializers.Serializer[Any]):
    """A member of the router's intent that would change. A value is null if the member does not exist."""

    end = serializers.ChoiceField(choices=["a", "z"])
    field = serializers.CharField(help_text="The member of the intent, for example transport.vni.")
    before = ValueField()
    after = ValueField()


class OperationSerializer(serializers.Serializer[Any]):
    """An operation that the router would execute. ``n``: its place in the sequence."""

    n = serializers.IntegerField(min_value=1)
    stage = serializers.CharField()
    end = serializers.CharField(help_text="The end that the operation belongs to.")
    message = serializers.CharField(help_text="The message of VPP's binary API.")
    cli = serializers.CharField(help_text="The equivalent line of VPP's CLI.")
    why = serializers.CharField()


class PlannedEndSerializer(serializers.Serializer[Any]):
    """An end that would be pending or in conflict."""

    end = serializers.ChoiceField(choices=["a", "z"])
    status = serializers.CharField()
    reason = FactsField()


class RouterPlanSerializer(serializers.Serializer[Any]):
    """The plan of one router. ``error``: the reason why the router has no plan; otherwise empty."""

    router = serializers.CharField(source="name")
    generation = serializers.IntegerField(
        help_text="The generation of the router at the time of the request."
    )
    differences = DifferenceSerializer(many=True)
    operations = OperationSerializer(many=True)
    ends = PlannedEndSerializer(many=True)
    error = serializers.CharField(allow_blank=True)


class PlanSerializer(serializers.ModelSerializer[PlanResult]):
    """A plan. Its `state` is `underWay` while the portal queries the routers, then `ready` or `lost`. A
    `ready` plan becomes `stale` when a router has changed.
    """

    state = serializers.SerializerMethodField()
    refusal = FactsField(help_text="Why the order cannot be approved as it is.")
    routers = RouterPlanSerializer(many=True)

    class Meta:
        model = PlanResult
        fields = ["id", "state", "asked_by", "asked_at", "finished_at", "refusal", "routers"]
        extra_kwargs = {"asked_by": {"source": "requested_by"}, "asked_at": {"source": "requested_at"}}

    @extend_schema_field({"type": "string", "enum": PlanState.values})
    def get_state(self, plan: PlanResult) -> str:
        return state_of(plan, now=clock.now())
