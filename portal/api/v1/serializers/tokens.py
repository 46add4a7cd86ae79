"""API tokens in requests and responses. The secret is only in the response to the creation of the token."""

from typing import Any

from rest_framework import serializers

from portal.accounts.cidr_field import Network, network_of
from portal.accounts.models import ApiToken, Scope
from portal.api.v1.serializers.strict_fields import StrictCharField, StrictSerializer


class NetworkField(StrictCharField):
    """An IP network, such as ``192.0.2.0/24``, or a single address."""

    def to_internal_value(self, data: Any) -> Network:  # type: ignore[override]
        text: str = super().to_internal_value(data)
        return network_of(text)

    def to_representation(self, value: Network) -> str:  # type: ignore[override]
        return str(value)


class TokenSerializer(serializers.ModelSerializer[ApiToken]):
    """A token, without its secret."""

    allowed_networks = serializers.ListField(child=NetworkField())

    class Meta:
        model = ApiToken
        fields: tuple[str, ...] = (
            "id",
            "name",
            "prefix",
            "scopes",
            "allowed_networks",
            "created_at",
            "expires_at",
            "last_used_at",
        )
        read_only_fields = fields


class TokenMadeSerializer(TokenSerializer):
    """A new token, with its secret."""

    secret = serializers.CharField(help_text="The value of the bearer token. It is not shown again.")

    class Meta(TokenSerializer.Meta):
        fields = (*TokenSerializer.Meta.fields, "secret")
        read_only_fields = fields


class TokenCreateSerializer(StrictSerializer):
    """A new token. A token without networks may be used from any address. A token without an expiry is valid
    until it is revoked.
    """

    name = StrictCharField(max_length=100)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=Scope.choices),
        min_length=1,
        max_length=len(Scope),
        help_text="noc is for NOC staff; team and webhooks are for admins of a customer or of the NOC.",
    )
    allowed_networks = serializers.ListField(child=NetworkField(), max_length=20, default=list)
    expires_at = serializers.DateTimeField(allow_null=True, default=None)
