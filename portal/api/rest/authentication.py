"""Authentication by ``Authorization: Bearer ll_<prefix>_<secret>``, and enforcement of the token's scopes."""

from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from portal.accounts.language import in_readers_language
from portal.accounts.models import ApiToken, Scope, User
from portal.accounts.tokens import token_allows_address, token_find
from portal.audit.actor import acting
from portal.core import clock
from portal.core.http import client_address


class BearerTokenAuthentication(BaseAuthentication):
    """Authenticates by API token (RFC 6750). For requests with another scheme, the next authentication class
    is tried.

    Only this class enforces scopes. A write needs the scope ``order`` or, for NOC staff, ``noc``. If writes
    to a view need another scope, the view names that scope in ``writes_with``. If a POST to a view changes
    nothing, the view sets ``writes = False``. Without the scope ``noc``, a token of NOC staff has no rights
    of the NOC.
    """

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        scheme, _space, plain = get_authorization_header(request).decode("latin-1").partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = token_find(plain.strip(), now=clock.now())
        if token is None:
            raise AuthenticationFailed(_("This API token is unknown, expired or revoked."))
        if not token_allows_address(token, client_address(request)):
            raise PermissionDenied(_("This API token may not be used from your address."))
        if _writes(request):
            _check_may_write(token, request)
        token.user.noc_powers_left_behind = Scope.NOC not in token.scopes
        acting(user_id=token.user.pk, username=token.user.username, token=token.prefix)
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="longline"'


def _writes(request: Request) -> bool:
    return request.method not in SAFE_METHODS and getattr(_view(request), "writes", True)


def _check_may_write(token: ApiToken, request: Request) -> None:
    needed = getattr(_view(request), "writes_with", None)
    if needed is not None:
        if needed not in token.scopes:
            raise PermissionDenied(needs_scope(needed))
        return
    # A former member of the NOC staff may still have a token with the scope ``noc``. This token must not be
    # sufficient.
    enough = {Scope.ORDER, Scope.NOC} if token.user.is_noc else {Scope.ORDER}
    if not enough & set(token.scopes):
        raise PermissionDenied(_("This API token may only read. Use one with the scope order or noc."))


def needs_scope(scope: str) -> str:
    """Return the error text for a token without this scope."""
    with in_readers_language():
        return gettext("This API token may not do this. Use one with the scope %(scope)s.") % {"scope": scope}


def _view(request: Request) -> Any:
    return (request.parser_context or {}).get("view")
