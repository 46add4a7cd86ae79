"""Webhooks in requests and responses. Only the response to a webhook's creation, or to the replacement of its
secret, contains the secret.
"""

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
