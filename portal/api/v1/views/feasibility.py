"""The check of an order without placing it."""

from drf_spectacular.utils import extend_schema
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.openapi.feasibility import OUTLOOK
from portal.api.v1.permission_classes import caller
from portal.api.v1.serializers.feasibility import feasibility_json
from portal.api.v1.serializers.orders import OrderAddSerializer, requested_order
from portal.core import clock
from portal.vll.feasibility import feasibility_of


class ValidateView(APIView):
    """The check of an order without placing it."""

    permission_classes = [IsAuthenticated]
    writes = False

    @extend_schema(request=OrderAddSerializer, responses={200: OUTLOOK})
    def post(self, request: Request) -> Response:
        """Check an order without placing it.

        The check changes nothing. The response has all reasons against the order.
        """
        order = requested_order(request.data)
        found = feasibility_of(user=caller(request), now=clock.now(), **order)
        return Response(feasibility_json(found))
