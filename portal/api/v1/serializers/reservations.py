"""Reservations in requests and responses."""

from typing import Any

from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from portal.api.v1.serializers.orders import EndSerializer, OuterVlanField, ordered_outer_vlan
from portal.api.v1.serializers.strict_fields import MAX_SAFE_INTEGER, StrictIntegerField, StrictSerializer
from portal.core.vlan_tags import Tagging
from portal.vll.line_spec import END
from portal.vll.models import Reservation
from portal.vll.models.reservation import MAX_RENEWALS


@extend_schema_serializer(component_name="HoldMake")
class ReservationMakeSerializer(StrictSerializer):
    """The body of ``POST /api/v1/holds``: two ends and a rate in bit/s."""

    a_end = EndSerializer()
    z_end = EndSerializer()
    cir_bps = StrictIntegerField(min_value=0, max_value=MAX_SAFE_INTEGER)


@extend_schema_serializer(component_name="HeldEnd")
class ReservedEndSerializer(serializers.Serializer[Any]):
    """One end of a reservation, with the requested (a number or "any") and the allocated outer VLAN."""

    port = serializers.IntegerField()
    tagging = serializers.ChoiceField(choices=[t.value for t in Tagging])
    outer_vlan = serializers.IntegerField(allow_null=True)
    requested_outer_vlan = OuterVlanField(allow_null=True)
    inner_vlan = serializers.IntegerField(allow_null=True)
    exact_match = serializers.BooleanField()


@extend_schema_serializer(component_name="Hold")
class ReservationSerializer(serializers.ModelSerializer[Reservation]):
    """A reservation with its allocated VLANs and the number of remaining renewals."""

    customer = serializers.CharField(source="customer.name")
    renewals_left = serializers.SerializerMethodField()
    a_end = serializers.SerializerMethodField()
    z_end = serializers.SerializerMethodField()

    class Meta:
        model = Reservation
        fields = [
            "id",
            "customer",
            "held_by",
            "created_at",
            "expires_at",
            "renewals_left",
            "cir_bps",
            "a_end",
            "z_end",
        ]
        extra_kwargs = {"held_by": {"source": "reserved_by"}}

    def get_renewals_left(self, reservation: Reservation) -> int:
        return MAX_RENEWALS - reservation.renewals

    @extend_schema_field(ReservedEndSerializer)
    def get_a_end(self, reservation: Reservation) -> dict[str, Any]:
        return _end(reservation.ends["a"])

    @extend_schema_field(ReservedEndSerializer)
    def get_z_end(self, reservation: Reservation) -> dict[str, Any]:
        return _end(reservation.ends["z"])


def _end(kept: dict[str, Any]) -> dict[str, Any]:
    requested = ordered_outer_vlan(requested=kept["requested_outer_vlan"], allocated=kept["outer_vlan"])
    return {**{each.name: kept[each.name] for each in END}, "requested_outer_vlan": requested}
