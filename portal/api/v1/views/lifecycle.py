"""Suspending, resuming and restoring a VLL, and what can be done to an order; each answers 202."""

from typing import Any
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
from portal.api.v1.permissions import IsNoc, IsNocAdmin, caller
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

    permission_classes = [IsAuthenticated]
    queryset = Vll.objects.none()
    serializer_class = VllSerializer

    def get_queryset(self) -> QuerySet[Vll]:
        return queries.vlls(caller(self.request))


class SuspendView(VllActionView):
    permission_classes = [IsAuthenticated]

    @extend_schema(request=None, responses={202: AcceptedSerializer})
    @once_per_key
    @if_match(required=False)
    def post(self, request: Request, vll: Vll) -> Response:
        """Take a VLL out of service. Its leases are kept."""
        return accepted(request, order_suspend(user=caller(request), vll=vll, now=clock.now()))


class ResumeView(VllActionView):
    permission_classes = [IsAuthenticated]

    @extend_schema(request=None, responses={202: AcceptedSerializer})
    @once_per_key
    @if_match(required=False)
    def post(self, request: Request, vll: Vll) -> Response:
        """Put a suspended VLL back in service."""
        return accepted(request, order_resume(user=caller(request), vll=vll, now=clock.now()))


class RestoreView(VllActionView):
    permission_classes = [IsAuthenticated]

    @extend_schema(request=None, responses={202: AcceptedSerializer})
    @once_per_key
    @if_match(required=False)
    def post(self, request: Request, vll: Vll) -> Response:
        """Take a removal back. Possible within its cooling-off."""
        return accepted(request, order_restore(user=caller(request), vll=vll, now=clock.now()))


class OrderActionView(generics.GenericAPIView[Order]):
    """A POST that does something to one order."""

    permission_classes = [IsAuthenticated]
    queryset = Order.objects.none()
    serializer_class = OrderSerializer

    def get_queryset(self) -> QuerySet[Order]:
        return queries.orders(caller(self.request))

    def order(self, pk: UUID) -> Any:
        """The order, or 404 outside the caller's scope."""
        return get_object_or_404(self.get_queryset(), pk=pk)


class CancelView(OrderActionView):
    permission_classes = [IsAuthenticated]

    @extend_schema(request=None, responses={202: AcceptedSerializer})
    @once_per_key
    def post(self, request: Request, pk: UUID) -> Response:
        """Cancel an order that is not done."""
        return accepted(request, order_cancel(user=caller(request), order=self.order(pk), now=clock.now()))


class RetryView(OrderActionView):
    permission_classes = [IsAuthenticated]

    @extend_schema(request=None, responses={202: AcceptedSerializer})
    @once_per_key
    def post(self, request: Request, pk: UUID) -> Response:
        """Order anew what failed. The new order is a `retry_of` the old one."""
        return accepted(request, order_retry(user=caller(request), order=self.order(pk), now=clock.now()))


class ApproveView(OrderActionView):
    permission_classes = [IsNoc]

    @extend_schema(request=ApprovalSerializer, responses={202: AcceptedSerializer})
    @once_per_key
    def post(self, request: Request, pk: UUID) -> Response:
        """Approve an order that is held; for NOC staff. With `plan`, only if it still holds."""
        body = ApprovalSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        approved = order_approve(
            user=caller(request), order=self.order(pk), now=clock.now(), **body.validated_data
        )
        return accepted(request, approved)


class RejectView(OrderActionView):
    permission_classes = [IsNoc]

    @extend_schema(request=RejectionSerializer, responses={202: AcceptedSerializer})
    @once_per_key
    def post(self, request: Request, pk: UUID) -> Response:
        """Reject an order that is held; for NOC staff."""
        body = RejectionSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        rejected = order_reject(
            user=caller(request), order=self.order(pk), now=clock.now(), **body.validated_data
        )
        return accepted(request, rejected)


class ForceRetryView(OrderActionView):
    permission_classes = [IsNoc]

    @extend_schema(request=None, responses={202: AcceptedSerializer})
    @once_per_key
    def post(self, request: Request, pk: UUID) -> Response:
        """Ask the routers of an open order again now; for NOC staff."""
        pressed = order_force_retry(user=caller(request), order=self.order(pk), now=clock.now())
        return accepted(request, pressed)


class ForceEndView(OrderActionView):
    permission_classes = [IsNocAdmin]

    @extend_schema(request=ForceEndSerializer, responses={202: AcceptedSerializer})
    @once_per_key
    def post(self, request: Request, pk: UUID) -> Response:
        """End an order whose undoing or removal no router confirms; for NOC admins.

        Its leases stay until all routers have confirmed.
        """
        body = ForceEndSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        ended = order_force_end(
            user=caller(request), order=self.order(pk), now=clock.now(), **body.validated_data
        )
        return accepted(request, ended)
