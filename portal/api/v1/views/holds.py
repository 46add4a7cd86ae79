"""Holds: reservations of VLANs and bandwidth of two ports before an order."""

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
from portal.api.v1.serializers.holds import HoldMakeSerializer, HoldSerializer
from portal.api.v1.serializers.strict_fields import validated
from portal.core import clock
from portal.vll import queries
from portal.vll.models import Hold
from portal.vll.operations import hold_make, hold_release, hold_renew


class HoldsView(generics.ListAPIView[Hold]):
    """The open holds of your customers."""

    permission_classes = [IsAuthenticated]
    queryset = Hold.objects.none()
    serializer_class = HoldSerializer
    pagination_class = NewestVllFirst

    def get_queryset(self) -> QuerySet[Hold]:
        return queries.holds(caller(self.request), now=clock.now())

    @extend_schema(request=HoldMakeSerializer, responses={201: HoldSerializer})
    @once_per_key
    def post(self, request: Request) -> Response:
        """Hold VLANs and bandwidth of two ports for 900 s."""
        body = validated(HoldMakeSerializer, request.data)
        hold = hold_make(user=caller(request), now=clock.now(), **body)
        where = reverse("api-v1:hold", args=[hold.pk], request=request)
        return Response(
            HoldSerializer(hold).data, status=status.HTTP_201_CREATED, headers={"Location": where}
        )


class HoldView(generics.RetrieveAPIView[Hold]):
    """One hold. 404 after its end."""

    permission_classes = [IsAuthenticated]
    queryset = Hold.objects.none()
    serializer_class = HoldSerializer

    def get_queryset(self) -> QuerySet[Hold]:
        return queries.holds(caller(self.request), now=clock.now())

    @once_per_key
    def delete(self, request: Request, pk: UUID) -> Response:
        """Release the VLANs and bandwidth of the hold."""
        hold = self.get_object()
        hold_release(user=caller(request), hold=hold.pk, now=clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class HoldRenewalView(APIView):
    """The renewal of a hold."""

    permission_classes = [IsAuthenticated]

    @extend_schema(request=None, responses={200: HoldSerializer})
    @once_per_key
    def post(self, request: Request, pk: UUID) -> Response:
        """Renew a hold for another 900 s, at most three times."""
        hold = generics.get_object_or_404(queries.holds(caller(request), now=clock.now()), pk=pk)
        renewed = hold_renew(user=caller(request), hold=hold.pk, now=clock.now())
        return Response(HoldSerializer(renewed).data)
