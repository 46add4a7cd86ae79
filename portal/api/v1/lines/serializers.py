"""Lines, their ends and their orders in requests and responses."""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Literal, TypedDict
from uuid import UUID

from django.core.exceptions import ObjectDoesNotExist
from django.shortcuts import get_object_or_404
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request

from portal.api.rest.access_control import caller
from portal.api.rest.request_bodies import (
    MAX_SAFE_INTEGER,
    REQUESTED,
    FactsField,
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
    StrictUuidField,
)
from portal.core.network.vlan_tags import MAX_VLAN, MIN_VLAN, Tagging
from portal.diagnosis.health import Health, HealthState, known_health
from portal.vll.line_revision import change_kinds
from portal.vll.line_spec import END, LINE, ChangeKind, EndSpec, LineSpec, Property
from portal.vll.models import Order, Vll, VllEnd
from portal.vll.path_status import PathStatus, Unwatched, path_status
from portal.vll.queries import orderers_may_order
from portal.vll.sentences import unpoliced, unpoliced_text

# Fields for which reading the attribute is sufficient.
_PLAIN = (
    serializers.BooleanField,
    serializers.CharField,
    serializers.ChoiceField,
    serializers.DateTimeField,
    serializers.IntegerField,
    serializers.JSONField,
    serializers.UUIDField,
)
_Read = Callable[[Any], Any]


class PrecomputedReads(serializers.BaseSerializer[Any]):
    """A mixin that produces the same result as the plain serializer with a third of the function calls.

    A page of 50 lines has 3,200 fields. For each field of each row, Django REST framework finds the field,
    and checks whether the row is a mapping and whether the value is callable.
    """

    def to_representation(self, instance: Any) -> dict[str, Any]:
        try:
            return {name: read(instance) for name, read in self._reads}
        except (AttributeError, ObjectDoesNotExist):
            # Let the framework handle missing attributes; it has rules for them.
            plain: dict[str, Any] = super().to_representation(instance)
            return plain

    @cached_property
    def _reads(self) -> list[tuple[str, _Read]]:
        fields = self.fields.values()  # type: ignore[attr-defined]
        return [(field.field_name, _read_of(field)) for field in fields if not field.write_only]


def _read_of(field: Any) -> _Read:
    if isinstance(field, serializers.SerializerMethodField):
        method: _Read = getattr(field.parent, field.method_name)
        return method
    write, source = field.to_representation, str(field.source)
    if isinstance(field, serializers.PrimaryKeyRelatedField) and field.pk_field is None:
        return lambda row: row.serializable_value(source)
    get = attrgetter(source) if isinstance(field, _PLAIN) else field.get_attribute

    def read(row: Any) -> Any:
        value = get(row)
        if callable(value):
            value = value()
        return None if value is None else write(value)

    return read


def visible_line(request: Request, pk: UUID, *prefetched: str) -> Vll:
    """Return the line with this id. Raises Http404 if the caller may not see it.

    ``prefetched``: the related rows that are read too, such as ``ends__port``.
    """
    lines = Vll.objects.visible_to(caller(request)).prefetch_related(*prefetched)
    vll: Vll = get_object_or_404(lines, pk=pk)
    return vll


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
    if each.longest:
        return StrictCharField(allow_blank=True, max_length=each.longest, **more)
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


class UnpolicedReason(TypedDict):
    """The reason why an end is not policed: a stable code, and a sentence with the same meaning."""

    code: str
    message: str


class PathStatusSerializer(PrecomputedReads, serializers.Serializer[PathStatus]):
    """The state of the path between a line's routers. ``since`` is set if the path is up or down. Otherwise
    ``why`` is set.
    """

    state = serializers.ChoiceField(choices=["up", "down", "starting", "not_watched"])
    since = serializers.DateTimeField(allow_null=True)
    why = serializers.ChoiceField(choices=[why.value for why in Unwatched], allow_null=True)
    message = serializers.CharField()


class HealthSerializer(serializers.Serializer[Health]):
    """The state of a line in one word. ``cause`` is a sentence, or null for a healthy line."""

    state = serializers.ChoiceField(choices=HealthState.values)
    cause = serializers.CharField(allow_null=True)
    since = serializers.DateTimeField(allow_null=True)


class VllEndSerializer(PrecomputedReads, serializers.ModelSerializer[VllEnd]):
    """One end of a line: its place, the selection of its frames, and the last response of its router."""

    port_name = serializers.CharField(source="port.__str__")
    router = serializers.CharField(source="port.router.name")
    site = serializers.CharField(source="port.router.site.name")
    requested_outer_vlan = serializers.SerializerMethodField()
    reason = FactsField(read_only=True)
    unpoliced_reason = serializers.SerializerMethodField()

    class Meta:
        model = VllEnd
        fields = [
            "port",
            "port_name",
            "router",
            "site",
            "tagging",
            "outer_vlan",
            "requested_outer_vlan",
            "inner_vlan",
            *(each.name for each in END if each.is_flag),
            "tunnel_address",
            "status",
            "status_revision",
            "reason",
            "policed",
            "unpoliced_reason",
            "held_down",
        ]
        extra_kwargs = {"held_down": {"source": "shut_down"}}

    @extend_schema_field({"oneOf": [*OUTER_VLAN["oneOf"], {"type": "null"}]})
    def get_requested_outer_vlan(self, end: VllEnd) -> int | str | None:
        """The ordered outer VLAN: a number, "any", or null for a whole port."""
        return ordered_outer_vlan(requested=end.requested_outer_vlan, allocated=end.outer_vlan)

    def get_unpoliced_reason(self, end: VllEnd) -> UnpolicedReason | None:
        """The reason why the router does not enforce the bandwidth profile at this end; null if it does."""
        why = unpoliced(end)
        return None if why is None else {"code": why.value, "message": unpoliced_text(end, why)}


# All rows share these serializers, because constructing one takes longer than using it.
_END = VllEndSerializer()
_PATH = PathStatusSerializer()


class VllSerializer(PrecomputedReads, serializers.ModelSerializer[Vll]):
    """A line: its health, the five facts from which its health is derived, and its ordered and allocated
    values. Sizes in bytes, rates in bit/s.
    """

    # Before a list is serialized, ``with_health`` must have been called on its rows.
    health = serializers.SerializerMethodField()
    customer = serializers.CharField(source="customer.name")
    transport = serializers.CharField()
    policed = serializers.BooleanField(read_only=True)
    path = serializers.SerializerMethodField()
    cbs_bytes = serializers.IntegerField(source="profile.cbs_bytes", read_only=True)
    ebs_bytes = serializers.IntegerField(source="profile.ebs_bytes", read_only=True)
    a_end = serializers.SerializerMethodField()
    z_end = serializers.SerializerMethodField()

    class Meta:
        model = Vll
        fields = [
            "id",
            "customer",
            "description",
            "created_at",
            "health",
            "lifecycle",
            "decommission_at",
            "admin_status",
            "oper_status",
            "in_sync",
            "requested_transport",
            "transport",
            "vni",
            "gre_key",
            "svc_mtu",
            "frame",
            "cir_bps",
            "cbs_bytes",
            "requested_cbs_bytes",
            "eir_bps",
            "ebs_bytes",
            "requested_ebs_bytes",
            *(each.name for each in LINE if each.is_flag),
            "policed",
            "path",
            "revision",
            "a_end",
            "z_end",
        ]

    @extend_schema_field(HealthSerializer(allow_null=True))
    def get_health(self, vll: Vll) -> dict[str, Any] | None:
        """The health of the line; null after its end."""
        found = known_health(vll)
        if found is None:
            return None
        return {"state": found.state.value, "cause": found.cause or None, "since": found.since}

    @extend_schema_field(PathStatusSerializer(allow_null=True))
    def get_path(self, vll: Vll) -> dict[str, Any] | None:
        """The state of the path; null for a line that is not in service or has both ends on one router."""
        found = path_status(vll)
        return None if found is None else _PATH.to_representation(found)

    @extend_schema_field(VllEndSerializer)
    def get_a_end(self, vll: Vll) -> dict[str, Any]:
        return self._end(vll, "a")

    @extend_schema_field(VllEndSerializer)
    def get_z_end(self, vll: Vll) -> dict[str, Any]:
        return self._end(vll, "z")

    def _end(self, vll: Vll, side: str) -> dict[str, Any]:
        # The ends are prefetched, so this line does not query the database.
        return _END.to_representation(next(end for end in vll.ends.all() if end.side == side))
