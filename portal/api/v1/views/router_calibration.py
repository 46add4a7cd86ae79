"""The calibration of a router: the measured cost of each encapsulation. Order checks use these costs."""

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.allocation.transport_costs import calibration_of, transport_costs
from portal.api.v1.idempotency import once_per_key
from portal.api.v1.permission_classes import caller
from portal.api.v1.serializers.router_actions import CalibrationSerializer, CalibrationWriteSerializer
from portal.api.v1.serializers.strict_fields import validated
from portal.api.v1.views.inventory_crud import NocOnly
from portal.core import clock
from portal.inventory.calibration_document import calibration_read, calibration_text
from portal.inventory.models import Router
from portal.vll.calibration_rebooking import router_calibration_set


class RouterCalibrationView(APIView):
    """The calibration of a router."""

    permission_classes = [NocOnly]

    @extend_schema(responses={200: CalibrationSerializer})
    def get(self, request: Request, pk: int) -> Response:
        """The costs of transports that order checks use for this router. For NOC staff."""
        return Response(_document(get_object_or_404(Router, pk=pk)))

    @extend_schema(request=CalibrationWriteSerializer, responses={200: CalibrationSerializer})
    @once_per_key
    def post(self, request: Request, pk: int) -> Response:
        """Use a calibration of this router. For NOC staff. With null, the shipped table applies again. The
        load of the router's lines is booked again.
        """
        router = get_object_or_404(Router, pk=pk)
        body = validated(CalibrationWriteSerializer, request.data)
        document = body["calibration"]
        router_calibration_set(
            router=router,
            calibration=None
            if document is None
            else calibration_read(calibration_text(document), router=router.name),
            accept_affected=body["accept_affected"],
            user=caller(request),
            now=clock.now(),
        )
        return Response(_document(Router.objects.get(pk=pk)))


def _document(router: Router) -> dict[str, Any]:
    calibration = calibration_of(router)
    taken = {
        name: getattr(calibration, name, None) for name in ("measured_at", "vpp_version", "cpu", "clock_hz")
    }
    return dict(CalibrationSerializer({**taken, "transports": transport_costs(router)}).data)
