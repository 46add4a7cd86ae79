"""Asking whether a line could be ordered."""

from drf_spectacular.utils import extend_schema
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.openapi.outlook import OUTLOOK
from portal.api.v1.permissions import caller
from portal.api.v1.serializers.orders import OrderAddSerializer
from portal.api.v1.serializers.outlook import outlook_json
from portal.core import clock
from portal.vll.operations import LineRequest
from portal.vll.outlook import outlook


class ValidateView(APIView):
    """Asks whether a line could be ordered."""

    permission_classes = [IsAuthenticated]
    writes = False

    @extend_schema(request=OrderAddSerializer, responses={200: OUTLOOK})
    def post(self, request: Request) -> Response:
        """Check an order without placing it. Nothing is written; the answer holds all reasons at once."""
        body = OrderAddSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        asked = {name: body.validated_data[name] for name in LineRequest.__slots__}
        hold = body.validated_data["hold"]
        found = outlook(user=caller(request), request=LineRequest(**asked), now=clock.now(), hold=hold)
        return Response(outlook_json(found))
