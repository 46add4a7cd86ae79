"""The caller's own API tokens."""

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts.models import ApiToken
from portal.accounts.tokens import token_create, tokens_of
from portal.api.v1.cache_control import NO_STORE
from portal.api.v1.idempotency import once_per_key
from portal.api.v1.pagination import KeysetPagination
from portal.api.v1.permission_classes import ProvesIdentity, caller, token_of
from portal.api.v1.provenance import END, chosen
from portal.api.v1.serializers.provenance import ProvenanceSerializer
from portal.api.v1.serializers.strict_fields import validated
from portal.api.v1.serializers.tokens import TokenCreateSerializer, TokenMadeSerializer, TokenSerializer
from portal.audit.provenance import made_with, token_revoke_with
from portal.core import clock


class TokensView(generics.ListAPIView[ApiToken]):
    """Your API tokens, without the revoked ones."""

    permission_classes = [IsAuthenticated, ProvesIdentity]
    queryset = ApiToken.objects.none()
    serializer_class = TokenSerializer
    pagination_class = KeysetPagination

    def get_queryset(self) -> QuerySet[ApiToken]:
        return tokens_of(caller(self.request))

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


class TokenView(generics.RetrieveAPIView[ApiToken]):
    """One of your API tokens."""

    permission_classes = [IsAuthenticated]
    queryset = ApiToken.objects.none()
    serializer_class = TokenSerializer

    def get_queryset(self) -> QuerySet[ApiToken]:
        return tokens_of(caller(self.request))

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
    """The objects that were created with one of your API tokens."""

    permission_classes = [IsAuthenticated]

    @extend_schema(responses={200: ProvenanceSerializer})
    def get(self, request: Request, pk: int) -> Response:
        """The existing objects that were created with the token, or with tokens that the token created.

        Only objects that you may manage are listed.
        """
        token = get_object_or_404(tokens_of(caller(request)), pk=pk)
        return Response(ProvenanceSerializer(made_with(token, viewer=caller(request), now=clock.now())).data)
