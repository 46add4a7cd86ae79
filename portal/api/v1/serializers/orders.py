"""Orders in requests and responses."""

from collections.abc import Iterable
from typing import Any, Literal

from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.api.rest.event_data import FactsField
from portal.api.rest.partial_update import REQUESTED
from portal.api.rest.strict_fields import (
    MAX_SAFE_INTEGER,
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
    StrictUuidField,
)
from portal.core.network.vlan_tags import MAX_VLAN, MIN_VLAN, Tagging
from portal.vll.line_spec import END, LINE, ChangeKind, EndSpec, LineSpec, Property
from portal.vll.models import Order
from portal.vll.order_diff import change_kinds
from portal.vll.queries import orderers_may_order

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


def property_fields(properties: Iterable[Property], *, changes: bool = False) -> dict[str, Any]:
    """Return the fields of a request for properties of a line or an end, keyed by their names.

    ``changes``: each value is optional. If the document of a line has the ordered value as ``requested_x``,
    next to the allocated value ``x``, the request may also use this name.
    """
    fields = {}
    for each in properties:
        fields[each.name] = _field(each, changes)
        if changes and each.column.startswith(REQUESTED):
            fields[each.column] = _field(each, changes)
    return fields


def _field(each: Property, changes: bool) -> serializers.Field[Any, Any, Any, Any]:
    more: dict[str, Any] = {}
    if each.api_help_in_changes or not changes:
        more["help_text"] = each.api_help
    if changes:
        more["required"] = False
    elif not each.is_required:
        more |= {"required": False, "default": each.default}
    if each.default is None:
        more["allow_null"] = True
    if each.is_flag:
        return StrictBooleanField(**more)
    if each.choices:
        return serializers.ChoiceField(choices=each.choices, **more)
    if each.name == "outer_vlan":
        return OuterVlanField(**more)
    if each.name == "description":
        return StrictCharField(allow_blank=True, max_length=100, **more)
    if each.least is not None:
        more |= {"min_value": each.least, "max_value": MAX_SAFE_INTEGER}
    return StrictIntegerField(**more)


class EndSerializer(StrictSerializer):
    """One end of an order."""

    def get_fields(self) -> dict[str, Any]:
        return property_fields(END)

    def validate(self, attrs: dict[str, Any]) -> Any:
        return EndSpec(**attrs | {"tagging": Tagging(attrs["tagging"])})


class OrderAddSerializer(StrictSerializer):
    """An order for a new line. Sizes in bytes, rates in bit/s."""

    def get_fields(self) -> dict[str, Any]:
        fields = property_fields(LINE)
        hold = StrictUuidField(
            source="reservation",
            required=False,
            allow_null=True,
            default=None,
            help_text="The `id` of a reservation. The order takes over its VLANs and bandwidth.",
        )
        ends = {"a_end": EndSerializer(), "z_end": EndSerializer()}
        return {"description": fields.pop("description"), **ends, **fields, "hold": hold}

    def validate(self, attrs: dict[str, Any]) -> Any:
        reservation = attrs.pop("reservation")
        return {"spec": LineSpec(**attrs), "reservation": reservation}


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
