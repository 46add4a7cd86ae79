"""Actions on a VLL (suspend, resume, restore, release) and on an order. Each responds with 202."""

from collections.abc import Callable
from typing import Any, ClassVar
from uuid import UUID

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.rest.etags import if_match
from portal.api.rest.idempotency import once_per_key
from portal.api.rest.permission_classes import IsNoc, IsNocAdmin, caller
from portal.api.rest.strict_fields import validated
from portal.api.v1.serializers.lifecycle import ForceEndSerializer, RejectionSerializer
from portal.api.v1.serializers.order_accepted import AcceptedSerializer
from portal.api.v1.serializers.order_plans import ApprovalSerializer
from portal.api.v1.serializers.orders import OrderSerializer
from portal.api.v1.serializers.vlls import VllSerializer
from portal.api.v1.views.order_accepted import accepted
from portal.core import clock
from portal.vll import queries
from portal.vll.models import Order, Vll
from portal.vll.operations import (
    line_let_go,
    order_approve,
    order_cancel,
    order_force_end,
    order_force_retry,
    order_reject,
    order_restore,
    order_resume,
    order_retry,
    order_suspend,
)


class VllActionView(generics.GenericAPIView[Vll]):
    """The base of actions on one VLL: a POST without a body, with optional ``If-Match``."""

    queryset = Vll.objects.none()
    serializer_class = VllSerializer
    do: ClassVar[Callable[..., Order]]

    def get_queryset(self) -> QuerySet[Vll]:
        return queries.vlls(caller(self.request))

    @extend_schema(request=None, responses={202: AcceptedSerializer})
    @once_per_key
    @if_match(required=False)
    def post(self, request: Request, vll: Vll) -> Response:
        return accepted(request, type(self).do(user=caller(request), vll=vll, now=clock.now()))


class SuspendView(VllActionView):
    """Take a VLL out of service. The VLL keeps its leases."""

    permission_classes = [IsAuthenticated]
    do = order_suspend


class ResumeView(VllActionView):
    """Put a suspended VLL back in service."""

    permission_classes = [IsAuthenticated]
    do = order_resume


class RestoreView(VllActionView):
    """Undo a removal. This is possible until the end of its cooling-off."""

    permission_classes = [IsAuthenticated]
    do = order_restore


class LetGoView(VllActionView):
    """Release a VLL, so that it keeps forwarding as a foreign line that the portal does not manage. For NOC
    admins.
    """

    permission_classes = [IsNocAdmin]
    do = line_let_go


class OrderActionView(generics.GenericAPIView[Order]):
    """The base of actions on one order: a POST, without a body unless the view defines one."""

    queryset = Order.objects.none()
    serializer_class = OrderSerializer
    do: ClassVar[Callable[..., Order]]

    def get_queryset(self) -> QuerySet[Order]:
        return queries.orders(caller(self.request))

    @extend_schema(request=None, responses={202: AcceptedSerializer})
    @once_per_key
    def post(self, request: Request, pk: UUID) -> Response:
        return self.done(request, pk)

    def done(self, request: Request, pk: UUID, **body: Any) -> Response:
        done = type(self).do(user=caller(request), order=self.order(pk), now=clock.now(), **body)
        return accepted(request, done)

    def order(self, pk: UUID) -> Any:
        """Return the order. Raises Http404 outside the caller's scope."""
        return get_object_or_404(self.get_queryset(), pk=pk)


class CancelView(OrderActionView):
    """Cancel an order that has not ended."""

    permission_classes = [IsAuthenticated]
    do = order_cancel


class RetryView(OrderActionView):
    """Repeat a failed order. The new order refers to the failed order with `retry_of`."""

    permission_classes = [IsAuthenticated]
    do = order_retry


class ApproveView(OrderActionView):
    permission_classes = [IsNoc]
    do = order_approve

    @extend_schema(request=ApprovalSerializer, responses={202: AcceptedSerializer})
    @once_per_key
    def post(self, request: Request, pk: UUID) -> Response:
        """Approve an order that waits for approval. For NOC staff. The approval is refused if `plan` is no
        longer valid.
        """
        return self.done(request, pk, **validated(ApprovalSerializer, request.data))


class RejectView(OrderActionView):
    permission_classes = [IsNoc]
    do = order_reject

    @extend_schema(request=RejectionSerializer, responses={202: AcceptedSerializer})
    @once_per_key
    def post(self, request: Request, pk: UUID) -> Response:
        """Reject an order that waits for approval. For NOC staff."""
        return self.done(request, pk, **validated(RejectionSerializer, request.data))


class ForceRetryView(OrderActionView):
    """Send an open order to its routers again, immediately. For NOC staff."""

    permission_classes = [IsNoc]
    do = order_force_retry


class ForceEndView(OrderActionView):
    permission_classes = [IsNocAdmin]
    do = order_force_end

    @extend_schema(request=ForceEndSerializer, responses={202: AcceptedSerializer})
    @once_per_key
    def post(self, request: Request, pk: UUID) -> Response:
        """End an order without waiting until its routers confirm the removal or the undoing. For NOC admins.

        The line keeps its leases until all routers have confirmed.
        """
        return self.done(request, pk, **validated(ForceEndSerializer, request.data))
