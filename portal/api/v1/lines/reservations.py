"""Reservations of ports and VLANs."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_serializer
from rest_framework import generics, serializers, status
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.rest.access_control import caller
from portal.api.rest.idempotency import once_per_key
from portal.api.rest.lists import NewestVllFirst
from portal.api.rest.request_bodies import MAX_SAFE_INTEGER, StrictIntegerField, StrictSerializer, validated
from portal.api.rest.views import VisibleListView, VisibleRowView, located
from portal.api.v1.lines.serializers import EndSerializer, OuterVlanField, ordered_outer_vlan
from portal.core import clock
from portal.core.network.vlan_tags import Tagging
from portal.vll import queries
from portal.vll.line_spec import END
from portal.vll.models import Reservation
from portal.vll.models.order import MAX_RENEWALS
from portal.vll.operations.reservations import reservation_make, reservation_release, reservation_renew


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


class ReservationsView(VisibleListView[Reservation]):
    """The open reservations of your customers."""

    permission_classes = [IsAuthenticated]
    serializer_class = ReservationSerializer
    pagination_class = NewestVllFirst

    def visible_rows(self) -> QuerySet[Reservation]:
        return queries.reservations(caller(self.request), now=clock.now())

    @extend_schema(request=ReservationMakeSerializer, responses={201: ReservationSerializer})
    @once_per_key
    def post(self, request: Request) -> Response:
        """Reserve VLANs and bandwidth of two ports for 900 s."""
        body = validated(ReservationMakeSerializer, request.data)
        reservation = reservation_make(user=caller(request), now=clock.now(), **body)
        document = ReservationSerializer(reservation).data
        return located(document, "reservation", reservation.pk, request=request)


class ReservationView(VisibleRowView[Reservation]):
    """One reservation. 404 after its end."""

    permission_classes = [IsAuthenticated]
    serializer_class = ReservationSerializer

    def visible_rows(self) -> QuerySet[Reservation]:
        return queries.reservations(caller(self.request), now=clock.now())

    @once_per_key
    def delete(self, request: Request, pk: UUID) -> Response:
        """Release the VLANs and bandwidth of the reservation."""
        reservation = self.get_object()
        reservation_release(user=caller(request), reservation=reservation.pk, now=clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class ReservationRenewalView(APIView):
    permission_classes = [IsAuthenticated]

    @extend_schema(request=None, responses={200: ReservationSerializer})
    @once_per_key
    def post(self, request: Request, pk: UUID) -> Response:
        """Renew a reservation for another 900 s, at most three times."""
        reservation = generics.get_object_or_404(
            queries.reservations(caller(request), now=clock.now()), pk=pk
        )
        renewed = reservation_renew(user=caller(request), reservation=reservation.pk, now=clock.now())
        return Response(ReservationSerializer(renewed).data)
