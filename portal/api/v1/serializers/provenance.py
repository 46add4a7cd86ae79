"""The objects that were created with a token or by a person, in responses."""

from typing import Any

from rest_framework import serializers

from portal.accounts.models import ApiToken, Invitation
from portal.audit.provenance import Made


class MadeWebhookSerializer(serializers.Serializer[Any]):
    key = serializers.CharField(help_text="The value for the parameter ``end``.")
    id = serializers.IntegerField()
    customer = serializers.CharField(allow_null=True, help_text="Null for a webhook of the NOC.")
    url = serializers.CharField()
    description = serializers.CharField()
    created_at = serializers.DateTimeField()


class MadeEnrolmentSerializer(serializers.Serializer[Any]):
    """An enrolment of a router's agent. ``serial`` is null before its use."""

    key = serializers.CharField(help_text="The value for the parameter ``end``.")
    router = serializers.CharField()
    created_at = serializers.DateTimeField()
    serial = serializers.CharField(allow_null=True, help_text="The serial number of its certificate.")


class MadeTokenSerializer(serializers.ModelSerializer[ApiToken]):
    class Meta:
        model = ApiToken
        fields = ["name", "prefix", "scopes", "created_at"]


class MadeInvitationSerializer(serializers.ModelSerializer[Invitation]):
    customer = serializers.CharField(source="customer.name")

    class Meta:
        model = Invitation
        fields = ["id", "customer", "email", "role", "created_at"]


class ProvenanceSerializer(serializers.Serializer[Any]):
    """The objects that were created with the token or by the person. ``tokens`` and ``invitations`` always
    end together with the token or account. ``webhooks`` and ``enrolments`` end only if their keys are sent as
    ``end``.
    """

    webhooks = MadeWebhookSerializer(many=True)
    enrolments = MadeEnrolmentSerializer(many=True)
    tokens = MadeTokenSerializer(many=True)
    invitations = MadeInvitationSerializer(many=True)

    def to_representation(self, instance: Made) -> dict[str, Any]:
        webhooks = [
            {
                "key": key,
                "id": row.pk,
                "customer": row.customer.name if row.customer else None,
                "url": row.url,
                "description": row.description,
                "created_at": row.created_at,
            }
            for key, row in instance.webhooks.items()
        ]
        enrolments = [
            {
                "key": key,
                "router": row.router.name,
                "created_at": row.created_at,
                "serial": row.routercertificate.serial if row.used_at else None,
            }
            for key, row in instance.enrolments.items()
        ]
        found = {"tokens": instance.tokens, "invitations": instance.invitations}
        return super().to_representation({"webhooks": webhooks, "enrolments": enrolments, **found})
