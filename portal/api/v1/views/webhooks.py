"""Webhooks, their logs, and the catalogue of what they are told."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import SAFE_METHODS, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from portal.accounts import permissions
from portal.accounts.models import Customer, Scope, User
from portal.api.v1.cache_control import NO_STORE
from portal.api.v1.etags import ConditionalRetrieveView, etag_of, if_match
from portal.api.v1.idempotency import once_per_key
from portal.api.v1.managed_customer import ADMINS_ALONE, managed_customer
from portal.api.v1.pagination import KeysetPagination, NewestVllFirst
from portal.api.v1.partial_update import changed_members
from portal.api.v1.permission_classes import caller, token_of
from portal.api.v1.serializers.strict_fields import validated
from portal.api.v1.serializers.webhooks import (
    DeliverySerializer,
    EventTypesSerializer,
    WebhookChangeSerializer,
    WebhookCreateSerializer,
    WebhookMadeSerializer,
    WebhookSecretSerializer,
    WebhookSerializer,
)
from portal.core import clock
from portal.notifications import queries
from portal.notifications.event_catalogue import TYPES
from portal.notifications.models import Delivery, Webhook
from portal.notifications.webhook_operations import (
    delivery_redeliver,
    webhook_change,
    webhook_create,
    webhook_disable,
    webhook_enable,
    webhook_remove,
    webhook_rotate,
    webhook_test,
)


def check_may(request: Request, webhook: Webhook) -> None:
    """Raises PermissionDenied for members who do not run the customer, and for writes of mere NOC staff."""
    reads = request.method in SAFE_METHODS
    may = permissions.may_see_webhooks if reads else permissions.may_manage_webhooks
    if not may(caller(request), webhook.customer):
        raise PermissionDenied(ADMINS_ALONE)


class WebhooksView(generics.ListAPIView[Webhook]):
    """The webhooks of the customers that you run; for NOC staff all."""

    permission_classes = [IsAuthenticated]
    writes_with = Scope.WEBHOOKS
    queryset = Webhook.objects.none()
    serializer_class = WebhookSerializer
    pagination_class = KeysetPagination

    def get_queryset(self) -> QuerySet[Webhook]:
        return queries.managed_webhooks(caller(self.request))

    # Without an Idempotency-Key: the answer would be kept, and with it the secret.
    @extend_schema(request=WebhookCreateSerializer, responses={201: WebhookMadeSerializer})
    def post(self, request: Request) -> Response:
        """Add a webhook; for admins, by a token with the scope webhooks. Its ``secret`` is in this answer
        only."""
        asked = validated(WebhookCreateSerializer, request.data)
        customer = _owner(caller(request), asked.pop("customer"))
        webhook, secret = webhook_create(
            user=caller(request), customer=customer, made_with=token_of(request), now=clock.now(), **asked
        )
        answer = {**WebhookSerializer(webhook).data, "secret": secret}
        headers = {**NO_STORE, "Location": reverse("api-v1:webhook", args=[webhook.pk], request=request)}
        return Response(answer, status=status.HTTP_201_CREATED, headers=headers)


class WebhookView(ConditionalRetrieveView[Webhook]):
    """One webhook."""

    permission_classes = [IsAuthenticated]
    writes_with = Scope.WEBHOOKS
    queryset = Webhook.objects.none()
    serializer_class = WebhookSerializer

    def get_queryset(self) -> QuerySet[Webhook]:
        return queries.webhooks(caller(self.request))

    def get_object(self) -> Webhook:
        found = super().get_object()
        check_may(self.request, found)
        return found

    @extend_schema(request=WebhookChangeSerializer, responses={200: WebhookSerializer})
    @once_per_key
    @if_match(required=True)
    def patch(self, request: Request, found: Webhook) -> Response:
        """Change, disable or enable it; for admins, by a token with the scope webhooks. What waits goes to
        the new address."""
        check_may(request, found)
        document = self.get_serializer(found).data
        body = changed_members(request.data, document, WebhookChangeSerializer())
        if body:
            changes = validated(WebhookChangeSerializer, body, partial=True)
            _change(request, found, **changes)
            document = self.get_serializer(self.get_queryset().get(pk=found.pk)).data
        return Response(document, headers={"ETag": etag_of(document)})

    @extend_schema(request=None, responses={204: None})
    @once_per_key
    @if_match(required=False)
    def delete(self, request: Request, found: Webhook) -> Response:
        """Remove it, its secret and its log; for admins, by a token with the scope webhooks."""
        check_may(request, found)
        webhook_remove(webhook=found)
        return Response(status=status.HTTP_204_NO_CONTENT)


class WebhookSecretView(APIView):
    """Another secret for a webhook."""

    permission_classes = [IsAuthenticated]
    writes_with = Scope.WEBHOOKS

    # Without an Idempotency-Key: the answer would be kept, and with it the secret.
    @extend_schema(request=None, responses={201: WebhookSecretSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Give it another secret; for admins, by a token with the scope webhooks. The old one signs too for
        24 hours."""
        webhook = _webhook(request, pk)
        secret = webhook_rotate(webhook=webhook, by=caller(request), token=token_of(request), now=clock.now())
        webhook.refresh_from_db()
        answer = WebhookSecretSerializer({"secret": secret, "previous_until": webhook.previous_until})
        return Response(answer.data, status=status.HTTP_201_CREATED, headers=NO_STORE)


class WebhookTestView(APIView):
    """Trying a webhook."""

    permission_classes = [IsAuthenticated]
    writes_with = Scope.WEBHOOKS

    @extend_schema(request=None, responses={201: DeliverySerializer})
    @once_per_key
    def post(self, request: Request, pk: int) -> Response:
        """Send it a test; for admins, by a token with the scope webhooks. How that goes is in the log."""
        delivery = webhook_test(webhook=_webhook(request, pk), now=clock.now())
        where = reverse("api-v1:webhook-delivery", args=[delivery.pk], request=request)
        return Response(
            DeliverySerializer(delivery).data, status=status.HTTP_201_CREATED, headers={"Location": where}
        )


class DeliveriesView(generics.ListAPIView[Delivery]):
    """The deliveries of a webhook in the last weeks, newest first."""

    permission_classes = [IsAuthenticated]
    queryset = Delivery.objects.none()
    serializer_class = DeliverySerializer
    pagination_class = NewestVllFirst

    def get_queryset(self) -> QuerySet[Delivery]:
        webhook = _webhook(self.request, self.kwargs["pk"])
        return queries.deliveries(caller(self.request)).filter(webhook=webhook)


class DeliveryView(generics.RetrieveAPIView[Delivery]):
    """One delivery."""

    permission_classes = [IsAuthenticated]
    queryset = Delivery.objects.none()
    serializer_class = DeliverySerializer

    def get_queryset(self) -> QuerySet[Delivery]:
        return queries.deliveries(caller(self.request))

    def get_object(self) -> Delivery:
        found = super().get_object()
        check_may(self.request, found.webhook)
        return found


class RedeliverView(APIView):
    """Sending something once more."""

    permission_classes = [IsAuthenticated]
    writes_with = Scope.WEBHOOKS

    @extend_schema(request=None, responses={200: DeliverySerializer})
    @once_per_key
    def post(self, request: Request, pk: UUID) -> Response:
        """Send the same message under the same webhook-id again; for admins, by a token with the scope
        webhooks."""
        found = get_object_or_404(queries.deliveries(caller(request)), pk=pk)
        check_may(request, found.webhook)
        delivery_redeliver(delivery=found, now=clock.now())
        found.refresh_from_db()
        return Response(DeliverySerializer(found).data)


class EventTypesView(APIView):
    """The catalogue of events."""

    permission_classes = [IsAuthenticated]

    @extend_schema(responses={200: EventTypesSerializer})
    def get(self, request: Request) -> Response:
        """The events that webhooks are told: each type with the JSON Schema of its body and an example."""
        rows: list[dict[str, Any]] = [
            {"name": each.name, "about": str(each.about), "schema": each.schema, "example": each.body}
            for each in TYPES
        ]
        return Response(EventTypesSerializer({"results": rows}).data)


def _change(request: Request, webhook: Webhook, *, enabled: bool | None = None, **facts: Any) -> None:
    """Change the webhook's ``facts``, and enable or disable it. ``enabled=None`` leaves that as it is."""
    now = clock.now()
    webhook_change(webhook=webhook, by=caller(request), token=token_of(request), now=now, **facts)
    if enabled is True:
        webhook_enable(webhook=webhook)
    elif enabled is False:
        webhook_disable(webhook=webhook, because=Webhook.Disabled.BY_HAND, now=now)


def _webhook(request: Request, pk: int) -> Webhook:
    """One that the caller may see, or for a write may manage. Raises Http404, PermissionDenied."""
    webhook = get_object_or_404(queries.webhooks(caller(request)), pk=pk)
    check_may(request, webhook)
    return webhook


def _owner(user: User, name: str | None) -> Customer | None:
    """The customer of a new webhook, None for the NOC. Raises PermissionDenied, ValidationError."""
    return None if name is None and user.is_noc_admin else managed_customer(user, name)
