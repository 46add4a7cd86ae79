"""The plan of a held order: what the routers would do if it were approved."""

from uuid import UUID

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from portal.api.v1.idempotency import once_per_key
from portal.api.v1.permission_classes import IsNoc, caller
from portal.api.v1.serializers.order_plans import PlanSerializer
from portal.api.v1.views.lifecycle import OrderActionView
from portal.core import clock
from portal.vll.operations import plan_ask
from portal.vll.operations.order_plan_preview import plan_of


class PlanView(OrderActionView):
    """The plan of a held order; for NOC staff."""

    # Whose order it is comes first: to a stranger there is none.
    permission_classes = [IsAuthenticated]
    noc_alone = True

    @extend_schema(responses={200: PlanSerializer})
    def get(self, request: Request, pk: UUID) -> Response:
        """The newest plan that was asked for; for NOC staff. 404 when none was."""
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
        """Ask both routers what they would do, which they do not; for NOC staff. Read it at Location."""
        order = self.order(pk)
        if not caller(request).is_noc:
            raise PermissionDenied(IsNoc.message)
        plan = plan_ask(user=caller(request), order=order, now=clock.now())
        where = reverse("api-v1:order-plan", args=[order.pk], request=request)
        headers = {"Location": where, "Retry-After": "1"}
        return Response(PlanSerializer(plan).data, status=status.HTTP_202_ACCEPTED, headers=headers)
