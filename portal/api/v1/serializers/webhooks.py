"""Webhooks over the wire: everything but the secrets, each of which is in one answer only."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.api.v1.serializers.strict_fields import (
    StrictBooleanField,
    StrictCharField,
    StrictLookupField,
    StrictSerializer,
)
from portal.notifications.event_catalogue import CHOICES
from portal.notifications.models import Delivery, Webhook
from portal.notifications.public_address_check import LONGEST_URL


class WebhookSerializer(serializers.ModelSerializer[Webhook]):
    """``customer`` null: the NOC's own, told of every customer's events. ``types`` empty: all of them."""

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
    """A webhook at its birth."""

    secret = serializers.CharField(help_text="What its messages are signed with. It is not shown again.")

    class Meta(WebhookSerializer.Meta):
        fields = (*WebhookSerializer.Meta.fields, "secret")
        read_only_fields = fields


class WebhookSecretSerializer(serializers.Serializer[Any]):
    """A new secret; until ``previous_until`` the one before signs too."""

    secret = serializers.CharField(help_text="It is not shown again.")
    previous_until = serializers.DateTimeField()


class WebhookFactsSerializer(StrictSerializer):
    url = StrictCharField(max_length=LONGEST_URL)
    description = StrictCharField(max_length=100, allow_blank=True, required=False)
    types = serializers.ListField(
        child=serializers.ChoiceField(choices=CHOICES), max_length=len(CHOICES), required=False
    )


class WebhookCreateSerializer(WebhookFactsSerializer):
    """``customer``: a customer's name. Without it: the only one that you run; for NOC admins, their own."""

    customer = StrictLookupField(max_length=100, allow_null=True, required=False, default=None)


class WebhookChangeSerializer(WebhookFactsSerializer):
    enabled = StrictBooleanField(required=False)


@extend_schema_field(
    {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["at", "status", "error", "took_ms"],
            "properties": {
                "at": {"type": "string", "format": "date-time"},
                "status": {"type": ["integer", "null"]},
                "error": {"type": "string", "enum": Delivery.Error.values},
                "took_ms": {"type": "integer"},
            },
        },
    }
)
class TriesField(serializers.JSONField):
    """The newest tries, oldest first."""


class DeliverySerializer(serializers.ModelSerializer[Delivery]):
    """``webhook_id``: the header by which a receiver knows what it has had. ``answer``: how the last answer
    began."""

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
    """``schema`` is a JSON Schema of the whole body, ``example`` such a body."""

    name = serializers.CharField()
    about = serializers.CharField()
    schema = serializers.JSONField()
    example = serializers.JSONField()


class EventTypesSerializer(serializers.Serializer[Any]):
    results = EventTypeSerializer(many=True)
