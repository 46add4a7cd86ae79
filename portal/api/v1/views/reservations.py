"""Reservations of VLANs and bandwidth of two ports before an order."""

from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from portal.api.v1.idempotency import once_per_key
from portal.api.v1.pagination import NewestVllFirst
from portal.api.v1.permission_classes import caller
from portal.api.v1.serializers.reservations import ReservationMakeSerializer, ReservationSerializer
from portal.api.v1.serializers.strict_fields import validated
from portal.core import clock
from portal.vll import queries
from portal.vll.models import Reservation
from portal.vll.operations import reservation_make, reservation_release, reservation_renew


class ReservationsView(generics.ListAPIView[Reservation]):
    """The open reservations of your customers."""

    permission_classes = [IsAuthenticated]
    queryset = Reservation.objects.none()
    serializer_class = ReservationSerializer
    pagination_class = NewestVllFirst

    def get_queryset(self) -> QuerySet[Reservation]:
        return queries.reservations(caller(self.request), now=clock.now())

    @extend_schema(request=ReservationMakeSerializer, responses={201: ReservationSerializer})
    @once_per_key
    def post(self, request: Request) -> Response:
        """Reserve VLANs and bandwidth of two ports for 900 s."""
        body = validated(ReservationMakeSerializer, request.data)
        reservation = reservation_make(user=caller(request), now=clock.now(), **body)
        where = reverse("api-v1:reservation", args=[reservation.pk], request=request)
        return Response(
            ReservationSerializer(reservation).data,
            status=status.HTTP_201_CREATED,
            headers={"Location": where},
        )


class ReservationView(generics.RetrieveAPIView[Reservation]):
    """One reservation. 404 after its end."""

    permission_classes = [IsAuthenticated]
    queryset = Reservation.objects.none()
    serializer_class = ReservationSerializer

    def get_queryset(self) -> QuerySet[Reservation]:
        return queries.reservations(caller(self.request), now=clock.now())

    @once_per_key
    def delete(self, request: Request, pk: UUID) -> Response:
        """Release the VLANs and bandwidth of the reservation."""
        reservation = self.get_object()
        reservation_release(user=caller(request), reservation=reservation.pk, now=clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class ReservationRenewalView(APIView):
    """The renewal of a reservation."""

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
