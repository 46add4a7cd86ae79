"""API tokens, and the objects that were created with a token or by a person.

The secret of a token is only in the response to its creation.
"""

from typing import Any

from django.shortcuts import get_object_or_404
from django.utils.translation import gettext
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts.language import in_readers_language
from portal.accounts.models import ApiToken, Invitation, Network, Scope, network_of
from portal.accounts.tokens import token_create, tokens_of
from portal.api.rest.access_control import ProvesIdentity, caller, needs_scope, token_of
from portal.api.rest.conditional_requests import NO_STORE
from portal.api.rest.idempotency import once_per_key
from portal.api.rest.lists import KeysetPagination
from portal.api.rest.request_bodies import StrictCharField, StrictSerializer, validated
from portal.api.rest.views import VisibleListView, VisibleRowView
from portal.audit.provenance import Made, made_with, token_revoke_with
from portal.core import clock


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
