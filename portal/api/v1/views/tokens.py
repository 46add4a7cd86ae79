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
from portal.api.v1.permission_classes import caller, token_of
from portal.api.v1.provenance import END, chosen
from portal.api.v1.serializers.provenance import ProvenanceSerializer
from portal.api.v1.serializers.strict_fields import validated
from portal.api.v1.serializers.tokens import TokenCreateSerializer, TokenMadeSerializer, TokenSerializer
from portal.audit.provenance import made_with, token_revoke_with
from portal.core import clock


class TokensView(generics.ListAPIView[ApiToken]):
    """Your tokens that were not revoked."""

    permission_classes = [IsAuthenticated]
    queryset = ApiToken.objects.none()
    serializer_class = TokenSerializer
    pagination_class = KeysetPagination

    def get_queryset(self) -> QuerySet[ApiToken]:
        return tokens_of(caller(self.request))

    # Without an Idempotency-Key: the answer would be kept, and with it the secret.
    @extend_schema(request=TokenCreateSerializer, responses={201: TokenMadeSerializer})
    def post(self, request: Request) -> Response:
        """Make a token. Its ``secret`` is in this answer only; it may do no more than its maker's."""
        asked = validated(TokenCreateSerializer, request.data)
        token, plain = token_create(
            user=caller(request), now=clock.now(), made_with=token_of(request), **asked
        )
        answer = {**TokenSerializer(token).data, "secret": plain}
        return Response(answer, status=status.HTTP_201_CREATED, headers=NO_STORE)


class TokenView(generics.RetrieveAPIView[ApiToken]):
    """One token of yours."""

    permission_classes = [IsAuthenticated]
    queryset = ApiToken.objects.none()
    serializer_class = TokenSerializer

    def get_queryset(self) -> QuerySet[ApiToken]:
        return tokens_of(caller(self.request))

    @extend_schema(parameters=[END], request=None, responses={204: None})
    @once_per_key
    def delete(self, request: Request, pk: int) -> Response:
        """Revoke a token. It opens nothing from now on, nor does any that was made with it; open invitations
        that were sent with it end too."""
        token, now = get_object_or_404(self.get_queryset(), pk=pk), clock.now()
        ending = chosen(request, made_with(token, viewer=caller(request), now=now))
        token_revoke_with(token=token, ending=ending, now=now)
        return Response(status=status.HTTP_204_NO_CONTENT)


class TokenMadeWithView(APIView):
    """The things made with one token of yours."""

    permission_classes = [IsAuthenticated]

    @extend_schema(responses={200: ProvenanceSerializer})
    def get(self, request: Request, pk: int) -> Response:
        """The things made with it, or with tokens that were, and that stand: of what you run."""
        token = get_object_or_404(tokens_of(caller(request)), pk=pk)
        return Response(ProvenanceSerializer(made_with(token, viewer=caller(request), now=clock.now())).data)
