"""``Authorization: Bearer ll_<prefix>_<secret>``."""

from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from portal.accounts.models import ApiToken, User
from portal.accounts.tokens import token_find
from portal.core import clock


class BearerTokenAuthentication(BaseAuthentication):
    """Authenticates by API token (RFC 6750); other schemes are left to the next class."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        scheme, _, plain = get_authorization_header(request).decode("latin-1").partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = token_find(plain.strip(), now=clock.now())
        if token is None:
            raise AuthenticationFailed("This API token is unknown, expired or revoked.")
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="longline"'
