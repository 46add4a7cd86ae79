"""The things made with a token or by a person, over the wire."""

from typing import Any

from rest_framework import serializers

from portal.accounts.models import ApiToken, Invitation
from portal.audit.provenance import Made


class MadeWebhookSerializer(serializers.Serializer[Any]):
    key = serializers.CharField(help_text="What to send as ``end``.")
    id = serializers.IntegerField()
    customer = serializers.CharField(allow_null=True, help_text="Null: the NOC's own.")
    url = serializers.CharField()
    description = serializers.CharField()
    created_at = serializers.DateTimeField()


class MadeEnrolmentSerializer(serializers.Serializer[Any]):
    """``serial`` null: nobody has used it yet."""

    key = serializers.CharField(help_text="What to send as ``end``.")
    router = serializers.CharField()
    created_at = serializers.DateTimeField()
    serial = serializers.CharField(allow_null=True, help_text="Of the certificate that came of it.")


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
    """``webhooks`` and ``enrolments`` end when their keys are sent; ``tokens`` and ``invitations`` by
    themselves."""

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
