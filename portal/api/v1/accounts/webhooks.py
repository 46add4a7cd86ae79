"""Webhooks. The secret is only in the response to the creation of the webhook, and to its replacement."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import SAFE_METHODS, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from portal.accounts import permissions
from portal.accounts.models import Scope
from portal.api.openapi.schemas import INSTANT, array, record
from portal.api.rest.access_control import caller, token_of
from portal.api.rest.conditional_requests import NO_STORE, etag_of, if_match
from portal.api.rest.idempotency import once_per_key
from portal.api.rest.lists import KeysetPagination, NewestVllFirst
from portal.api.rest.request_bodies import (
    StrictBooleanField,
    StrictCharField,
    StrictLookupField,
    StrictSerializer,
    changed_members,
    validated,
)
from portal.api.rest.views import ConditionalRetrieveView, VisibleListView, VisibleRowView, located
from portal.api.v1.accounts.team import ADMINS_ONLY, managed_customer
from portal.core import clock
from portal.notifications import webhook_operations
from portal.notifications.event_catalogue import CHOICES, TYPES
from portal.notifications.models import Delivery, Webhook
from portal.notifications.public_address_check import LONGEST_URL


class WebhookSerializer(serializers.ModelSerializer[Webhook]):
    """A webhook. If ``customer`` is null, the webhook belongs to the NOC and gets the events of all
    customers. If ``types`` is empty, the webhook gets all types of events.
    """

    customer = serializers.CharField(source="customer.name", default=None)
    types = serializers.ListField(child=serializers.CharField())
    enabled = serializers.SerializerMethodField()

    class Meta:
        model = Webhook
        fields: tuple[str, ...] = (
            "id",
            "customer",
            "url",
            "description",
            "types",
            "enabled",
            "created_at",
            "created_by",
            "secret_set_at",
            "previous_until",
            "disabled_at",
            "disabled_because",
            "failing_since",
        )
        read_only_fields = fields

    def get_enabled(self, webhook: Webhook) -> bool:
        return webhook.disabled_at is None


class WebhookMadeSerializer(WebhookSerializer):
    """A new webhook, with its secret."""

    secret = serializers.CharField(help_text="The key that signs its messages. It is not shown again.")

    class Meta(WebhookSerializer.Meta):
        fields = (*WebhookSerializer.Meta.fields, "secret")
        read_only_fields = fields


class WebhookSecretSerializer(serializers.Serializer[Any]):
    """A new secret. Until ``previous_until``, messages are also signed with the previous secret."""

    secret = serializers.CharField(help_text="It is not shown again.")
    previous_until = serializers.DateTimeField()


class WebhookFactsSerializer(StrictSerializer):
    """The members of a webhook that a client may set."""

    url = StrictCharField(max_length=LONGEST_URL)
    description = StrictCharField(max_length=100, allow_blank=True, required=False)
    types = serializers.ListField(
        child=serializers.ChoiceField(choices=CHOICES), max_length=len(CHOICES), required=False
    )


class WebhookCreateSerializer(WebhookFactsSerializer):
    """A new webhook. ``customer``: a customer's name. Without a name, the webhook belongs to the only
    customer that you manage. If you are a NOC admin, it belongs to the NOC.
    """

    customer = StrictLookupField(max_length=100, allow_null=True, required=False, default=None)


class WebhookChangeSerializer(WebhookFactsSerializer):
    """A change of a webhook."""

    enabled = StrictBooleanField(required=False)


@extend_schema_field(
    array(
        record(
            at=INSTANT,
            status={"type": ["integer", "null"]},
            error={"type": "string", "enum": Delivery.Error.values},
            took_ms={"type": "integer"},
        )
    )
)
class TriesField(serializers.JSONField):
    """The latest attempts to deliver, oldest first."""


class DeliverySerializer(serializers.ModelSerializer[Delivery]):
    """A delivery. ``webhook_id``: the value of the header that identifies the message, so that a receiver can
    ignore repetitions. ``answer``: the beginning of the last response.
    """

    webhook_id = serializers.CharField(source="message_id")
    log = TriesField(read_only=True)

    class Meta:
        model = Delivery
        fields = [
            "id",
            "webhook",
            "webhook_id",
            "type",
            "created_at",
            "state",
            "tries",
            "next_try_at",
            "body",
            "log",
            "answer",
        ]


class EventTypeSerializer(serializers.Serializer[Any]):
    """A type of events. ``schema``: the JSON Schema of the whole body; ``example``: an example of the
    body.
    """

    name = serializers.CharField()
    about = serializers.CharField()
    schema = serializers.JSONField()
    example = serializers.JSONField()


class EventTypesSerializer(serializers.Serializer[Any]):
    results = EventTypeSerializer(many=True)


def check_may(request: Request, webhook: Webhook) -> None:
    """Raise PermissionDenied unless the caller is an admin of the customer or a NOC admin.

    All NOC staff may read.
    """
    reads = request.method in SAFE_METHODS
    may = permissions.may_see_webhooks if reads else permissions.may_manage_webhooks
    if not may(caller(request), webhook.customer):
        raise PermissionDenied(ADMINS_ONLY)


class WebhooksView(VisibleListView[Webhook]):
    """The webhooks of the customers that you manage. NOC staff read all webhooks."""

    permission_classes = [IsAuthenticated]
    writes_with = Scope.WEBHOOKS
    serializer_class = WebhookSerializer
    pagination_class = KeysetPagination
    rows = webhook_operations.managed_webhooks

    # ``once_per_key`` is missing on purpose: it would store the secret with the response.
    @extend_schema(request=WebhookCreateSerializer, responses={201: WebhookMadeSerializer})
    def post(self, request: Request) -> Response:
        """Add a webhook. For admins; a token needs the scope webhooks. Only this response contains its
        ``secret``.
        """
        body = validated(WebhookCreateSerializer, request.data)
        user, name = caller(request), body.pop("customer")
        # Without a name, the webhook of a NOC admin belongs to the NOC.
        customer = None if name is None and user.is_noc_admin else managed_customer(user, name)
        webhook, secret = webhook_operations.webhook_create(
            user=user, customer=customer, made_with=token_of(request), now=clock.now(), **body
        )
        document = {**WebhookSerializer(webhook).data, "secret": secret}
        headers = {**NO_STORE, "Location": reverse("api-v1:webhook", args=[webhook.pk], request=request)}
        return Response(document, status=status.HTTP_201_CREATED, headers=headers)


class WebhookView(ConditionalRetrieveView[Webhook]):
    """One webhook."""

    permission_classes = [IsAuthenticated]
    writes_with = Scope.WEBHOOKS
    serializer_class = WebhookSerializer
    rows = webhook_operations.webhooks

    def get_object(self) -> Webhook:
        found = super().get_object()
        check_may(self.request, found)
        return found

    @extend_schema(request=WebhookChangeSerializer, responses={200: WebhookSerializer})
    @once_per_key
    @if_match(required=True)
    def patch(self, request: Request, found: Webhook) -> Response:
        """Change, disable or enable a webhook. For admins; a token needs the scope webhooks. Waiting
        deliveries go to the new address.
        """
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
        """Remove a webhook with its secret and its deliveries. For admins; a token needs the scope
        webhooks.
        """
        check_may(request, found)
        webhook_operations.webhook_remove(webhook=found)
        return Response(status=status.HTTP_204_NO_CONTENT)


class WebhookSecretView(APIView):
    permission_classes = [IsAuthenticated]
    writes_with = Scope.WEBHOOKS

    # ``once_per_key`` is missing on purpose: it would store the secret with the response.
    @extend_schema(request=None, responses={201: WebhookSecretSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Replace the secret of a webhook. For admins; a token needs the scope webhooks. For 24 hours,
        messages have two signatures, with the new and with the old secret.
        """
        webhook = _webhook(request, pk)
        secret = webhook_operations.webhook_rotate(
            webhook=webhook, by=caller(request), token=token_of(request), now=clock.now()
        )
        webhook.refresh_from_db()
        document = WebhookSecretSerializer({"secret": secret, "previous_until": webhook.previous_until})
        return Response(document.data, status=status.HTTP_201_CREATED, headers=NO_STORE)


class WebhookTestView(APIView):
    permission_classes = [IsAuthenticated]
    writes_with = Scope.WEBHOOKS

    @extend_schema(request=None, responses={201: DeliverySerializer})
    @once_per_key
    def post(self, request: Request, pk: int) -> Response:
        """Send a test message to a webhook. For admins; a token needs the scope webhooks. The delivery has
        the result.
        """
        delivery = webhook_operations.webhook_test(webhook=_webhook(request, pk), now=clock.now())
        document = DeliverySerializer(delivery).data
        return located(document, "webhook-delivery", delivery.pk, request=request)


class DeliveriesView(VisibleListView[Delivery]):
    """The deliveries of a webhook, newest first. Old deliveries are deleted."""

    permission_classes = [IsAuthenticated]
    serializer_class = DeliverySerializer
    pagination_class = NewestVllFirst

    def visible_rows(self) -> QuerySet[Delivery]:
        webhook = _webhook(self.request, self.kwargs["pk"])
        return webhook_operations.deliveries(caller(self.request)).filter(webhook=webhook)


class DeliveryView(VisibleRowView[Delivery]):
    """One delivery."""

    permission_classes = [IsAuthenticated]
    serializer_class = DeliverySerializer
    rows = webhook_operations.deliveries

    def get_object(self) -> Delivery:
        found = super().get_object()
        check_may(self.request, found.webhook)
        return found


class RedeliverView(APIView):
    permission_classes = [IsAuthenticated]
    writes_with = Scope.WEBHOOKS

    @extend_schema(request=None, responses={200: DeliverySerializer})
    @once_per_key
    def post(self, request: Request, pk: UUID) -> Response:
        """Send a message again with the same webhook-id. For admins; a token needs the scope webhooks."""
        found = get_object_or_404(webhook_operations.deliveries(caller(request)), pk=pk)
        check_may(request, found.webhook)
        webhook_operations.delivery_redeliver(delivery=found, now=clock.now())
        found.refresh_from_db()
        return Response(DeliverySerializer(found).data)


class EventTypesView(APIView):
    permission_classes = [IsAuthenticated]

    @extend_schema(responses={200: EventTypesSerializer})
    def get(self, request: Request) -> Response:
        """The types of events that webhooks can get, with the JSON Schema of the body and an example."""
        rows: list[dict[str, Any]] = [
            {"name": each.name, "about": str(each.about), "schema": each.schema, "example": each.body}
            for each in TYPES
        ]
        return Response(EventTypesSerializer({"results": rows}).data)


def _change(request: Request, webhook: Webhook, *, enabled: bool | None = None, **facts: Any) -> None:
    """Change the webhook's ``facts``. Enable or disable the webhook, unless ``enabled`` is None."""
    now = clock.now()
    webhook_operations.webhook_change(
        webhook=webhook, by=caller(request), token=token_of(request), now=now, **facts
    )
    if enabled is True:
        webhook_operations.webhook_enable(webhook=webhook)
    elif enabled is False:
        webhook_operations.webhook_disable(webhook=webhook, because=Webhook.Disabled.BY_HAND, now=now)


def _webhook(request: Request, pk: int) -> Webhook:
    """Return a webhook that the caller may see. If the request writes, the caller must also manage it.

    Raises Http404, PermissionDenied.
    """
    webhook = get_object_or_404(webhook_operations.webhooks(caller(request)), pk=pk)
    check_may(request, webhook)
    return webhook
