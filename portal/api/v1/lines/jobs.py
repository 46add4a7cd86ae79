"""The response 202 to every order, and an order as a job: the progress of each end, and its result."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from portal.api.rest.access_control import caller
from portal.api.rest.request_bodies import FactsField
from portal.api.rest.views import ConditionalRetrieveView, located
from portal.api.v1.lines.serializers import OrderSerializer, VllSerializer
from portal.diagnosis.health import with_order
from portal.vll import queries
from portal.vll.models import Order, Vll, VllEnd
from portal.vll.sentences import maintenance_notice
from portal.vll.states import OrderAction, OrderState

JOB_STATUS: dict[str, str] = {
    OrderState.ACKNOWLEDGED: "pending",
    OrderState.PENDING_APPROVAL: "pending",
    OrderState.IN_PROGRESS: "running",
    OrderState.PENDING_CANCELLATION: "running",
    OrderState.COMPLETED: "succeeded",
    OrderState.FAILED: "failed",
    OrderState.REJECTED: "failed",
    OrderState.CANCELLED: "cancelled",
}
# ``waiting``: the router has not received this end's wanted revision. ``undone``: the job did not succeed.
WAITING, UNDONE = "waiting", "undone"
STEP_STATUS = [
    WAITING,
    *(status.value for status in VllEnd.Status if status is not VllEnd.Status.UNANSWERED),
    UNDONE,
]


class JobStepSerializer(serializers.Serializer[Any]):
    """One end's part in a job."""

    end = serializers.ChoiceField(choices=["a", "z"])
    router = serializers.CharField(
        allow_null=True, help_text="The router of the end; null after the job has ended."
    )
    status = serializers.ChoiceField(choices=STEP_STATUS)
    reason = FactsField(help_text="Why the router has not done it yet.")


class JobSerializer(serializers.Serializer[Order]):
    """A job. It never changes after its end."""

    id = serializers.UUIDField()
    status = serializers.SerializerMethodField()
    action = serializers.ChoiceField(choices=OrderAction.choices)
    state = serializers.ChoiceField(choices=OrderState.choices)
    started_at = serializers.DateTimeField(source="ordered_at")
    finished_at = serializers.SerializerMethodField()
    steps = serializers.SerializerMethodField()
    failure = FactsField()
    order = serializers.SerializerMethodField()
    result = serializers.SerializerMethodField()

    @extend_schema_field({"enum": sorted(set(JOB_STATUS.values())), "type": "string"})
    def get_status(self, order: Order) -> str:
        # A newer release may have stored a state unknown to this release. Such an order has not ended.
        return JOB_STATUS.get(order.state, "running")

    @extend_schema_field({"type": ["string", "null"], "format": "date-time"})
    def get_finished_at(self, order: Order) -> str | None:
        as_text = serializers.DateTimeField().to_representation
        return as_text(order.state_at) if order.is_terminal else None

    @extend_schema_field(JobStepSerializer(many=True))
    def get_steps(self, order: Order) -> list[dict[str, Any]]:
        return [_ended(order, side) for side in "az"] if order.is_terminal else _under_way(order)

    @extend_schema_field({"type": "string", "format": "uri"})
    def get_order(self, order: Order) -> str:
        return str(reverse("api-v1:order", args=[order.pk], request=self.context.get("request")))

    @extend_schema_field({"type": "string", "format": "uri"})
    def get_result(self, order: Order) -> str:
        return str(reverse("api-v1:vll", args=[order.vll_id], request=self.context.get("request")))


def _ended(order: Order, side: str) -> dict[str, Any]:
    status: str = UNDONE
    if order.state == OrderState.COMPLETED:
        gone = order.action == OrderAction.DELETE
        status = VllEnd.Status.REMOVED if gone else VllEnd.Status.VERIFIED
    return {"end": side, "router": None, "status": str(status), "reason": None}


def _under_way(order: Order) -> list[dict[str, Any]]:
    steps = []
    for end in order.vll.ends.all():
        has_responded = end.status_revision == order.vll.revision
        steps.append(
            {
                "end": end.side,
                "router": end.port.router.name,
                "status": end.status if has_responded else WAITING,
                "reason": end.reason if has_responded else maintenance_notice(end.port.router),
            }
        )
    return steps


class JobView(ConditionalRetrieveView[Order]):
    """An order as a job: the order's status, a step for each end, and the address of the result.

    A job has the id of its order. Poll it every Retry-After seconds. A job that has ended has no Retry-After
    and never changes again.
    """

    permission_classes = [IsAuthenticated]
    serializer_class = JobSerializer
    rows = queries.jobs

    def retrieved_headers(self, found: Order) -> dict[str, str]:
        return {} if found.is_terminal else {"Retry-After": "1"}


class AcceptedSerializer(serializers.Serializer[Any]):
    """The order, and the present state of the line."""

    order = OrderSerializer()
    vll = VllSerializer()


class OrderAddedSerializer(AcceptedSerializer):
    """The response to an order for a new line."""

    similar_orders = serializers.ListField(
        child=serializers.UUIDField(),
        help_text="Orders of the same customer with the same content in the last minute, newest first, at"
        " most 10. Descriptions may differ. If not empty, this order may be an accidental repetition.",
    )


# All requests share the serializers: they keep no state, and constructing them takes longer than their use.
_ORDER, _VLL = OrderSerializer(), VllSerializer()


def accepted(request: Request, order: Order, vll: Vll | None = None) -> Response:
    """Return the response 202: the portal has accepted the order and will execute it.

    The header ``Location`` has the address of the order; the client can poll it there. ``vll``: the line with
    its ends, if the caller has just stored the line. With None, the function reads the line.
    """
    if vll is None:
        vll = queries.vlls(caller(request)).get(pk=order.vll_id)
    line = _VLL.to_representation(with_order(vll, order))
    document = {"order": _ORDER.to_representation(order), "vll": line}
    return located(document, "order", order.pk, request=request, code=202)
