"""The plan of an order pending approval: the operations that the routers would execute after an approval."""

from uuid import UUID

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from portal.api.rest.idempotency import once_per_key
from portal.api.rest.permission_classes import IsNoc, caller
from portal.api.v1.serializers.order_plans import PlanSerializer
from portal.api.v1.views.lifecycle import OrderActionView
from portal.core import clock
from portal.vll.operations import plan_request
from portal.vll.operations.order_approval import plan_of


class PlanView(OrderActionView):
    """The plan of an order pending approval. For NOC staff."""

    # The views check the tenant scope before the role, so that other customers get 404 and not 403.
    permission_classes = [IsAuthenticated]
    noc_only = True

    @extend_schema(responses={200: PlanSerializer})
    def get(self, request: Request, pk: UUID) -> Response:
        """The latest plan of an order pending approval. For NOC staff. 404 if no plan was requested."""
        order = self.order(pk)
        if not caller(request).is_noc:
            raise PermissionDenied(IsNoc.message)
        plan = plan_of(order)
        if plan is None:
            raise Http404
        return Response(PlanSerializer(plan).data)

    @extend_schema(request=None, responses={202: PlanSerializer})
    @once_per_key
    def post(self, request: Request, pk: UUID) -> Response:
        """Request a plan from both routers. For NOC staff. The routers change nothing. Read the plan at the
        address in Location.
        """
        order = self.order(pk)
        if not caller(request).is_noc:
            raise PermissionDenied(IsNoc.message)
        plan = plan_request(user=caller(request), order=order, now=clock.now())
        where = reverse("api-v1:order-plan", args=[order.pk], request=request)
        headers = {"Location": where, "Retry-After": "1"}
        return Response(PlanSerializer(plan).data, status=status.HTTP_202_ACCEPTED, headers=headers)
