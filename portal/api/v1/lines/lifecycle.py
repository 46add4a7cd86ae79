"""Actions on lines and orders: suspend, resume, restore, cancel, retry, approve; and the plan of an order."""

from collections.abc import Callable
from typing import Any, ClassVar
from uuid import UUID

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.rest.access_control import IsNoc, IsNocAdmin, caller
from portal.api.rest.conditional_requests import if_match
from portal.api.rest.idempotency import once_per_key
from portal.api.rest.request_bodies import (
    REQUESTED,
    FactsField,
    StrictCharField,
    StrictSerializer,
    StrictUuidField,
    validated,
)
from portal.api.rest.views import VisibleRows, located
from portal.api.v1.lines.jobs import AcceptedSerializer, accepted
from portal.api.v1.lines.serializers import OrderSerializer, VllSerializer, property_fields
from portal.core import clock
from portal.core.network.vlan_tags import Tagging
from portal.vll import queries
from portal.vll.line_spec import END, LINE
from portal.vll.models import Order, PlanResult, Vll
from portal.vll.operations import order_approval
from portal.vll.operations.line_removal import line_let_go, order_restore
from portal.vll.operations.modify_line import order_resume, order_suspend
from portal.vll.operations.order_endings import order_cancel, order_force_end, order_force_retry
from portal.vll.operations.retry_order import order_retry


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

    @extend_schema_field({"type": "string", "enum": order_approval.PlanState.values})
    def get_state(self, plan: PlanResult) -> str:
        return order_approval.state_of(plan, now=clock.now())


# The schema has the ordered values of a line in this order.
_ORDERED = ("requested_transport", "requested_cbs_bytes", "requested_ebs_bytes")


class EndChangeSerializer(StrictSerializer):
    """The changes of an end. Members that are left out stay as they are (RFC 7396).

    ``requested_outer_vlan`` is another name for ``outer_vlan``: in the document of a line, it is the ordered
    value.
    """

    def get_fields(self) -> dict[str, Any]:
        return property_fields(END, changes=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = _as_ordered(attrs)
        return attrs | ({"tagging": Tagging(attrs["tagging"])} if "tagging" in attrs else {})


class VllChangeSerializer(StrictSerializer):
    """The changes of a VLL. Sizes in bytes, rates in bit/s. Members that are left out stay as they are.

    ``requested_transport``, ``requested_cbs_bytes`` and ``requested_ebs_bytes`` are other names for
    ``transport``, ``cbs_bytes`` and ``ebs_bytes``: in the document of a line, they are the ordered values.
    """

    def get_fields(self) -> dict[str, Any]:
        fields = property_fields(LINE, changes=True)
        ends = {"a_end": EndChangeSerializer(required=False), "z_end": EndChangeSerializer(required=False)}
        ordered = {name: fields.pop(name) for name in _ORDERED}
        flags = {each.name: fields.pop(each.name) for each in LINE if each.is_flag}
        return {"description": fields.pop("description"), **ends, **fields, **ordered, **flags}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return _as_ordered(attrs)

    @property
    def only_describes(self) -> bool:
        """Whether the request changes only the description. Routers do not need to know the description."""
        return set(self.validated_data) == {"description"}


def _as_ordered(attrs: dict[str, Any]) -> dict[str, Any]:
    """Return the members with the names that an order uses, without ``requested_``."""
    plain = {name: value for name, value in attrs.items() if not name.startswith(REQUESTED)}
    return plain | {name.removeprefix(REQUESTED): attrs[name] for name in attrs if name.startswith(REQUESTED)}


class CoolingOffSerializer(serializers.Serializer[Any]):
    """The query of DELETE. If ``cooling_off`` is left out, the default for the customer applies."""

    cooling_off = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=10**9,
        help_text="Seconds during which the removal can be undone.",
    )


class RejectionSerializer(StrictSerializer):
    """The reason for a rejection; the customer can read it."""

    reason = StrictCharField(max_length=500, several_lines=True)


class ForceEndSerializer(RejectionSerializer):
    """The reason to end an order without the routers. It is stored with the order; the customer can
    read it.
    """


class VllActionView(VisibleRows[Vll]):
    """The base of actions on one VLL: a POST without a body, with optional ``If-Match``."""

    serializer_class = VllSerializer
    rows = queries.vlls
    do: ClassVar[Callable[..., Order]]

    @extend_schema(request=None, responses={202: AcceptedSerializer})
    @once_per_key
    @if_match(required=False)
    def post(self, request: Request, vll: Vll) -> Response:
        return accepted(request, type(self).do(user=caller(request), vll=vll, now=clock.now()))


class SuspendView(VllActionView):
    """Take a VLL out of service. The VLL keeps its leases."""

    permission_classes = [IsAuthenticated]
    do = order_suspend


class ResumeView(VllActionView):
    """Put a suspended VLL back in service."""

    permission_classes = [IsAuthenticated]
    do = order_resume


class RestoreView(VllActionView):
    """Undo a removal. This is possible until the end of its cooling-off."""

    permission_classes = [IsAuthenticated]
    do = order_restore


class LetGoView(VllActionView):
    """Release a VLL, so that it keeps forwarding as a foreign line that the portal does not manage. For NOC
    admins.
    """

    permission_classes = [IsNocAdmin]
    do = line_let_go


class OrderActionView(VisibleRows[Order]):
    """The base of actions on one order: a POST with a body for ``write_serializer``; without one if None."""

    serializer_class = OrderSerializer
    rows = queries.orders
    do: ClassVar[Callable[..., Order]]
    write_serializer: ClassVar[type[StrictSerializer] | None] = None

    @extend_schema(responses={202: AcceptedSerializer})
    @once_per_key
    def post(self, request: Request, pk: UUID) -> Response:
        body = validated(self.write_serializer, request.data) if self.write_serializer else {}
        done = type(self).do(user=caller(request), order=self.order(pk), now=clock.now(), **body)
        return accepted(request, done)

    def order(self, pk: UUID) -> Any:
        """Return the order. Raises Http404 outside the caller's scope."""
        return get_object_or_404(self.get_queryset(), pk=pk)


class CancelView(OrderActionView):
    """Cancel an order that has not ended."""

    permission_classes = [IsAuthenticated]
    do = order_cancel


class RetryView(OrderActionView):
    """Repeat a failed order. The new order refers to the failed order with `retry_of`."""

    permission_classes = [IsAuthenticated]
    do = order_retry


class ApproveView(OrderActionView):
    """Approve an order that waits for approval. For NOC staff. The approval is refused if `plan` is no
    longer valid.
    """

    permission_classes = [IsNoc]
    do = order_approval.order_approve
    write_serializer = ApprovalSerializer


class RejectView(OrderActionView):
    """Reject an order that waits for approval. For NOC staff."""

    permission_classes = [IsNoc]
    do = order_approval.order_reject
    write_serializer = RejectionSerializer


class ForceRetryView(OrderActionView):
    """Send an open order to its routers again, immediately. For NOC staff."""

    permission_classes = [IsNoc]
    do = order_force_retry


class ForceEndView(OrderActionView):
    """End an order without waiting until its routers confirm the removal or the undoing. For NOC admins.

    The line keeps its leases until all routers have confirmed.
    """

    permission_classes = [IsNocAdmin]
    do = order_force_end
    write_serializer = ForceEndSerializer


class PlanView(OrderActionView):
    """The plan of an order pending approval. For NOC staff."""

    permission_classes = [IsAuthenticated]
    # The views check the tenant scope before the role, so that other customers get 404 and not 403.
    noc_only = True

    def order(self, pk: UUID) -> Any:
        order = super().order(pk)
        if not caller(self.request).is_noc:
            raise PermissionDenied(IsNoc.message)
        return order

    @extend_schema(responses={200: PlanSerializer})
    def get(self, request: Request, pk: UUID) -> Response:
        """The latest plan of an order pending approval. For NOC staff. 404 if no plan was requested."""
        plan = order_approval.plan_of(self.order(pk))
        if plan is None:
            raise Http404
        return Response(PlanSerializer(plan).data)

    @extend_schema(request=None, responses={202: PlanSerializer})
    @once_per_key
    def post(self, request: Request, pk: UUID) -> Response:
        """Request a plan from both routers. For NOC staff. The routers change nothing. Read the plan at the
        address in Location.
        """
        order = self.order(pk)
        plan = order_approval.plan_request(user=caller(request), order=order, now=clock.now())
        return located(PlanSerializer(plan).data, "order-plan", order.pk, request=request, code=202)
