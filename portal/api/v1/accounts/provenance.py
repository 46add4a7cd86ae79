"""The objects that were created with a token or by a person, in responses."""

from typing import Any

from django.utils.translation import gettext
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.request import Request

from portal.accounts.language import in_readers_language
from portal.accounts.models import ApiToken, Invitation, Scope
from portal.api.rest.authentication import needs_scope
from portal.api.rest.permission_classes import token_of
from portal.audit.provenance import Made


class MadeWebhookSerializer(serializers.Serializer[Any]):
    key = serializers.CharField(help_text="The value for the parameter ``end``.")
    id = serializers.IntegerField()
    customer = serializers.CharField(
        source="customer.name", allow_null=True, help_text="Null for a webhook of the NOC."
    )
    url = serializers.CharField()
    description = serializers.CharField()
    created_at = serializers.DateTimeField()


class MadeEnrolmentSerializer(serializers.Serializer[Any]):
    """An enrolment of a router's agent. ``serial`` is null before its use."""

    key = serializers.CharField(help_text="The value for the parameter ``end``.")
    router = serializers.CharField(source="router.name")
    created_at = serializers.DateTimeField()
    serial = serializers.CharField(
        source="routercertificate.serial", allow_null=True, help_text="The serial number of its certificate."
    )


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
        for key, row in (*instance.webhooks.items(), *instance.enrolments.items()):
            vars(row)["key"] = key
        chosen = {"webhooks": instance.webhooks.values(), "enrolments": instance.enrolments.values()}
        found = {"tokens": instance.tokens, "invitations": instance.invitations}
        return super().to_representation(chosen | found)


END = OpenApiParameter(
    "end",
    str,
    many=True,
    description="The ``key`` of an object that ends too; may be repeated. Webhooks are disabled, and need the"
    " scope webhooks. Enrolments become void, and their certificates are revoked.",
)


def chosen(request: Request, made: Made) -> Made:
    """Return those objects of ``made`` that the caller chose. Raises ValidationError, PermissionDenied."""
    keys = set(request.query_params.getlist("end"))
    if unknown := sorted(keys - made.keys):
        with in_readers_language():
            text = gettext("No object that was created there with this key still exists: %(key)s")
            text %= {"key": unknown[0]}
        raise ValidationError({"end": [text]})
    ending, token = made.chosen(keys), token_of(request)
    if ending.webhooks and token is not None and Scope.WEBHOOKS not in token.scopes:
        raise PermissionDenied(needs_scope(Scope.WEBHOOKS))
    return ending
