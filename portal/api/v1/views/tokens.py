"""The caller's own API tokens."""

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.models import ApiToken
from portal.accounts.tokens import token_create, token_revoke, tokens_of
from portal.api.v1.idempotency import once_per_key
from portal.api.v1.pagination import KeysetPagination
from portal.api.v1.permissions import caller, token_of
from portal.api.v1.serializers.tokens import TokenCreateSerializer, TokenMadeSerializer, TokenSerializer
from portal.api.v1.uncached import NO_STORE
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
        body = TokenCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        token, plain = token_create(
            user=caller(request), now=clock.now(), made_with=token_of(request), **body.validated_data
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

    @extend_schema(request=None, responses={204: None})
    @once_per_key
    def delete(self, request: Request, pk: int) -> Response:
        """Revoke a token. It opens nothing from now on, nor does any that was made with it."""
        token_revoke(token=get_object_or_404(self.get_queryset(), pk=pk), now=clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)
