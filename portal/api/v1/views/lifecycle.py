"""Suspending, resuming and restoring a VLL, and what can be done to an order; each answers 202."""

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

from portal.api.v1.etags import if_match
from portal.api.v1.idempotency import once_per_key
from portal.api.v1.permission_classes import IsNoc, IsNocAdmin, caller
from portal.api.v1.serializers.lifecycle import ForceEndSerializer, RejectionSerializer
from portal.api.v1.serializers.order_accepted import AcceptedSerializer
from portal.api.v1.serializers.order_plans import ApprovalSerializer
from portal.api.v1.serializers.orders import OrderSerializer
from portal.api.v1.serializers.strict_fields import validated
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
    """A POST without a body that orders something about one VLL; ``If-Match`` is heeded when it is sent."""

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
    """Take a VLL out of service. Its leases are kept."""

    permission_classes = [IsAuthenticated]
    do = order_suspend


class ResumeView(VllActionView):
    """Put a suspended VLL back in service."""

    permission_classes = [IsAuthenticated]
    do = order_resume


class RestoreView(VllActionView):
    """Take a removal back. Possible within its cooling-off."""

    permission_classes = [IsAuthenticated]
    do = order_restore


class LetGoView(VllActionView):
    """Let a VLL go: it forwards on, as somebody else's, and the portal forgets it. For NOC admins."""

    permission_classes = [IsNocAdmin]
    do = line_let_go


class OrderActionView(generics.GenericAPIView[Order]):
    """A POST that does something to one order: without a body, unless the view takes one."""

    queryset = Order.objects.none()
    serializer_class = OrderSerializer
    do: ClassVar[Callable[..., Order]]

    def get_queryset(self) -> QuerySet[Order]:
        return queries.orders(caller(self.request))

    @extend_schema(request=None, responses={202: AcceptedSerializer})
    @once_per_key
    def post(self, request: Request, pk: UUID) -> Response:
        return self.done(request, pk)

    def done(self, request: Request, pk: UUID, **asked: Any) -> Response:
        done = type(self).do(user=caller(request), order=self.order(pk), now=clock.now(), **asked)
        return accepted(request, done)

    def order(self, pk: UUID) -> Any:
        """The order, or 404 outside the caller's scope."""
        return get_object_or_404(self.get_queryset(), pk=pk)


class CancelView(OrderActionView):
    """Cancel an order that is not done."""

    permission_classes = [IsAuthenticated]
    do = order_cancel


class RetryView(OrderActionView):
    """Order anew what failed. The new order is a `retry_of` the old one."""

    permission_classes = [IsAuthenticated]
    do = order_retry


class ApproveView(OrderActionView):
    permission_classes = [IsNoc]
    do = order_approve

    @extend_schema(request=ApprovalSerializer, responses={202: AcceptedSerializer})
    @once_per_key
    def post(self, request: Request, pk: UUID) -> Response:
        """Approve an order that is held; for NOC staff. With `plan`, only if it still holds."""
        return self.done(request, pk, **validated(ApprovalSerializer, request.data))


class RejectView(OrderActionView):
    permission_classes = [IsNoc]
    do = order_reject

    @extend_schema(request=RejectionSerializer, responses={202: AcceptedSerializer})
    @once_per_key
    def post(self, request: Request, pk: UUID) -> Response:
        """Reject an order that is held; for NOC staff."""
        return self.done(request, pk, **validated(RejectionSerializer, request.data))


class ForceRetryView(OrderActionView):
    """Ask the routers of an open order again now; for NOC staff."""

    permission_classes = [IsNoc]
    do = order_force_retry


class ForceEndView(OrderActionView):
    permission_classes = [IsNocAdmin]
    do = order_force_end

    @extend_schema(request=ForceEndSerializer, responses={202: AcceptedSerializer})
    @once_per_key
    def post(self, request: Request, pk: UUID) -> Response:
        """End an order whose undoing or removal no router confirms; for NOC admins.

        Its leases stay until all routers have confirmed.
        """
        return self.done(request, pk, **validated(ForceEndSerializer, request.data))
