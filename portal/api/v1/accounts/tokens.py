"""API tokens. The secret is only in the response to the creation of the token."""

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts.models import ApiToken, Network, Scope, network_of
from portal.accounts.tokens import token_create, tokens_of
from portal.api.rest.etags import NO_STORE
from portal.api.rest.idempotency import once_per_key
from portal.api.rest.pagination import KeysetPagination
from portal.api.rest.permission_classes import ProvesIdentity, caller, token_of
from portal.api.rest.strict_fields import StrictCharField, StrictSerializer, validated
from portal.api.rest.views import VisibleListView, VisibleRowView
from portal.api.v1.accounts.provenance import END, ProvenanceSerializer, chosen
from portal.audit.provenance import made_with, token_revoke_with
from portal.core import clock


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


class TokensView(VisibleListView[ApiToken]):
    """Your API tokens, without the revoked ones."""

    permission_classes = [IsAuthenticated, ProvesIdentity]
    serializer_class = TokenSerializer
    pagination_class = KeysetPagination
    rows = tokens_of

    # ``once_per_key`` is missing on purpose: it would store the secret with the response.
    @extend_schema(request=TokenCreateSerializer, responses={201: TokenMadeSerializer})
    def post(self, request: Request) -> Response:
        """Create an API token. Only this response contains its ``secret``. If you create it with another
        token, it cannot have more rights than that token.
        """
        body = validated(TokenCreateSerializer, request.data)
        token, plain = token_create(
            user=caller(request), now=clock.now(), made_with=token_of(request), **body
        )
        document = {**TokenSerializer(token).data, "secret": plain}
        return Response(document, status=status.HTTP_201_CREATED, headers=NO_STORE)


class TokenView(VisibleRowView[ApiToken]):
    """One of your API tokens."""

    permission_classes = [IsAuthenticated]
    serializer_class = TokenSerializer
    rows = tokens_of

    @extend_schema(parameters=[END], request=None, responses={204: None})
    @once_per_key
    def delete(self, request: Request, pk: int) -> Response:
        """Revoke an API token, and all tokens that were created with it. Open invitations that were sent with
        these tokens end too.
        """
        token, now = get_object_or_404(self.get_queryset(), pk=pk), clock.now()
        ending = chosen(request, made_with(token, viewer=caller(request), now=now))
        token_revoke_with(token=token, ending=ending, now=now)
        return Response(status=status.HTTP_204_NO_CONTENT)


class TokenMadeWithView(APIView):
    permission_classes = [IsAuthenticated]

    @extend_schema(responses={200: ProvenanceSerializer})
    def get(self, request: Request, pk: int) -> Response:
        """The existing objects that were created with the token, or with tokens that the token created.

        Only objects that you may manage are listed.
        """
        token = get_object_or_404(tokens_of(caller(request)), pk=pk)
        return Response(ProvenanceSerializer(made_with(token, viewer=caller(request), now=clock.now())).data)
