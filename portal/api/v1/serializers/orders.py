"""Orders in requests and responses."""

from typing import Any, Literal

from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.api.v1.serializers.bandwidth_profile import EIR_HELP, burst_field
from portal.api.v1.serializers.event_data import FactsField
from portal.api.v1.serializers.strict_fields import (
    MAX_SAFE_INTEGER,
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
    StrictUuidField,
)
from portal.core.encapsulations import Transport
from portal.core.vlan_tags import MAX_VLAN, MIN_VLAN, Tagging
from portal.vll.models import Order
from portal.vll.operations import EndRequest
from portal.vll.order_diff import ChangeKind, change_kinds
from portal.vll.queries import orderers_may_order

AUTO = "auto"
LINK_LOSS_HELP = (
    "Whether the line shuts the port at one end while the other end has lost its link. Only for whole ports."
)


OUTER_VLAN: dict[str, Any] = {
    "oneOf": [
        # The schema has no bounds for these numbers: ``validate`` accepts a number outside the bounds and
        # reports it as a reason.
        {"type": "integer", "description": f"{MIN_VLAN} to {MAX_VLAN}"},
        {"type": "string", "enum": ["any"]},
    ]
}


@extend_schema_field(OUTER_VLAN)
class OuterVlanField(serializers.Field[Any, Any, Any, Any]):
    """A VLAN id, or ``"any"``. ``check_end`` in portal.vll checks the range 1 to 4094."""

    default_error_messages = {"not_a_vlan": _('Give a VLAN id from 1 to 4094, "any", or null.')}

    def to_internal_value(self, data: Any) -> int | Literal["any"]:
        if data == "any":
            return "any"
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("not_a_vlan")
        return int(data)

    def to_representation(self, value: Any) -> Any:
        return value


def ordered_outer_vlan(*, requested: int | None, allocated: int | None) -> int | str | None:
    """Return the outer VLAN as an order names it: a number, "any", or null for a whole port."""
    return "any" if requested is None and allocated is not None else requested


class EndSerializer(StrictSerializer):
    """One end of an order."""

    port = StrictIntegerField(
        min_value=1, max_value=MAX_SAFE_INTEGER, help_text="The `id` of one of your ports."
    )
    tagging = serializers.ChoiceField(
        choices=[t.value for t in Tagging],
        help_text="The frames that belong to the line: `untagged` for the whole port, `dot1q` for one VLAN,"
        " `qinq` or `dot1ad` for an outer and an inner VLAN.",
    )
    outer_vlan = OuterVlanField(
        required=False,
        allow_null=True,
        default=None,
        help_text='`"any"` lets the portal choose a free VLAN. Left out or null for a whole port.',
    )
    inner_vlan = StrictIntegerField(
        required=False,
        allow_null=True,
        default=None,
        help_text="From 1 to 4094; only for `qinq` and `dot1ad`.",
    )
    exact_match = StrictBooleanField(
        required=False, default=True, help_text="False also accepts frames with further tags."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return {"end": EndRequest(**{**attrs, "tagging": Tagging(attrs["tagging"])})}


class OrderAddSerializer(StrictSerializer):
    """An order for a new line. Sizes in bytes, rates in bit/s."""

    description = StrictCharField(
        required=False, default="", allow_blank=True, max_length=100, help_text="Your name for the line."
    )
    a_end = EndSerializer()
    z_end = EndSerializer()
    svc_mtu = StrictIntegerField(
        min_value=0,
        max_value=MAX_SAFE_INTEGER,
        help_text="The largest IP packet that the line must carry, in bytes.",
    )
    cir_bps = StrictIntegerField(
        min_value=0,
        max_value=MAX_SAFE_INTEGER,
        help_text="The rate that is reserved for you in both directions, in bit/s.",
    )
    cbs_bytes = burst_field("CBS", required=False, default=None)
    eir_bps = StrictIntegerField(
        required=False, default=0, min_value=0, max_value=MAX_SAFE_INTEGER, help_text=EIR_HELP
    )
    ebs_bytes = burst_field("EBS", required=False, default=None)
    transport = serializers.ChoiceField(
        choices=[AUTO, *[t.value for t in Transport]],
        required=False,
        default=AUTO,
        help_text="The encapsulation of frames in the network. `auto` lets the portal choose one that carries"
        " `svc_mtu`.",
    )
    link_loss_forwarding = StrictBooleanField(required=False, default=False, help_text=LINK_LOSS_HELP)
    hold = StrictUuidField(
        source="reservation",
        required=False,
        allow_null=True,
        default=None,
        help_text="The `id` of a reservation. The order takes over its VLANs and bandwidth.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return {**attrs, "a_end": attrs["a_end"]["end"], "z_end": attrs["z_end"]["end"]}


# All requests share one instance: it keeps no state, and constructing an instance takes longer than using it.
_ORDER_ADD = OrderAddSerializer()


def requested_order(body: Any) -> dict[str, Any]:
    """Return the body of ``POST /api/v1/vlls`` as the arguments of ``order_add``.

    Raises DRF's ValidationError.
    """
    requested: dict[str, Any] = _ORDER_ADD.run_validation(body)
    return requested


class OrderListSerializer(serializers.ListSerializer[Order]):
    """A list of orders. For all orders pending approval, one query finds out whether the people who ordered
    may still order.
    """

    def to_representation(self, data: Any) -> Any:
        orders = list(data)
        may_order = orderers_may_order(orders)
        for order in orders:
            vars(order)["orderer_may_order"] = may_order.get(order.pk)
        return super().to_representation(orders)


class OrderSerializer(serializers.ModelSerializer[Order]):
    """An order."""

    failure = FactsField(read_only=True)
    changes = serializers.SerializerMethodField(help_text="The kinds of change, for a `modify`.")
    orderer_may_order = serializers.SerializerMethodField(
        help_text="For an order pending approval: whether `ordered_by` may still place it. False if the"
        " account is closed or its role has changed. Null for other orders."
    )

    class Meta:
        model = Order
        list_serializer_class = OrderListSerializer
        fields = [
            "id",
            "vll",
            "action",
            "changes",
            "state",
            "revision",
            "ordered_by",
            "orderer_may_order",
            "ordered_at",
            "state_at",
            "failure",
            "approved_at",
            "retry_of",
        ]

    @extend_schema_field({"type": ["boolean", "null"]})
    def get_orderer_may_order(self, order: Order) -> bool | None:
        if "orderer_may_order" not in vars(order):
            return orderers_may_order([order]).get(order.pk)
        may_order: bool | None = vars(order)["orderer_may_order"]
        return may_order

    @extend_schema_field({"type": "array", "items": {"type": "string", "enum": ChangeKind.values}})
    def get_changes(self, order: Order) -> list[str]:
        return [kind.value for kind in change_kinds(order)]
