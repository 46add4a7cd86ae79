"""The caller of a request: authentication by API token, permission to use a view, and limits on requests.

The permissions do not select rows. The tenant scope decides which rows a view shows.
"""

from typing import Any

from allauth.account.decorators import reauthentication_required
from allauth.core.exceptions import ReauthenticationRequired
from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _
from rest_framework import status
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import APIException, AuthenticationFailed, NotAuthenticated, PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from portal.accounts.language import in_readers_language
from portal.accounts.models import ApiToken, Scope, User
from portal.accounts.tokens import token_allows_address, token_find
from portal.audit.actor import acting
from portal.core import clock
from portal.core.http import absolute_url, client_address


def caller(request: Request) -> User:
    """Return the user who sent this request. Raises NotAuthenticated without a user."""
    if not isinstance(request.user, User):
        raise NotAuthenticated
    return request.user


def token_of(request: Request) -> ApiToken | None:
    """Return the API token of the request, or None if the request belongs to a session."""
    return request.auth if isinstance(request.auth, ApiToken) else None


class IsNoc(BasePermission):
    """Allows only NOC staff, because customers must not see the network's internals."""

    message = _("Only NOC staff may see this.")

    def has_permission(self, request: Request, view: Any) -> bool:
        return caller(request).is_noc


class IsNocAdmin(BasePermission):
    """Allows only NOC admins, for example to remove objects or to undo removals."""

    message = _("Only NOC admins may do this.")

    def has_permission(self, request: Request, view: Any) -> bool:
        return caller(request).is_noc_admin


class NocWrites(BasePermission):
    """Allows all users to read within their tenant scope, NOC staff to write, and NOC admins to remove."""

    message = _("Only NOC staff may change this, and only NOC admins remove it.")

    def has_permission(self, request: Request, view: Any) -> bool:
        user = caller(request)
        if request.method in SAFE_METHODS:
            return True
        return user.is_noc_admin if request.method == "DELETE" else user.is_noc


class NocOnly(NocWrites):
    """Allows only NOC staff to read and write, and only NOC admins to remove."""

    message = _("Only NOC staff may see this, and only NOC admins remove it.")

    def has_permission(self, request: Request, view: Any) -> bool:
        return caller(request).is_noc and super().has_permission(request, view)


class IdentityNotVerified(APIException):
    """The operation needs the password or a code in addition to the session."""

    status_code = status.HTTP_403_FORBIDDEN
    default_code = "identity_not_verified"

    def __init__(self) -> None:
        with in_readers_language():
            text = gettext(
                "An open session alone may not do this. Enter your password or a code at %(address)s, and"
                " send the request again within five minutes. Or send an API token."
            )
        super().__init__(text % {"address": absolute_url(reverse("account_reauthenticate"))})


class ProvesIdentity(BasePermission):
    """Refuses writes in a session if its user has not recently entered the password or a code.

    Pages have the same rule (``portal.web.page.base.proves_identity``). API tokens are not affected: their
    scopes limit them instead. A view in which only some methods need the proof lists them in
    ``proves_identity_for``.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        if request.method not in getattr(view, "proves_identity_for", _WRITES) or token_of(request):
            return True
        try:
            _require_proof(request._request)
        except ReauthenticationRequired:
            raise IdentityNotVerified from None
        return True


_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@reauthentication_required
def _require_proof(request: HttpRequest) -> HttpResponse:
    """Raise ReauthenticationRequired if no password or code was entered recently. The result is unused."""
    return HttpResponse()


class BearerTokenAuthentication(BaseAuthentication):
    """Authenticates by ``Authorization: Bearer ll_<prefix>_<secret>`` (RFC 6750).

    For requests with another scheme, the next authentication class is tried. Only this class enforces scopes.
    A write needs the scope ``order`` or, for NOC staff, ``noc``. If writes to a view need another scope, the
    view names that scope in ``writes_with``. If a POST to a view changes nothing, the view sets
    ``writes = False``. Without the scope ``noc``, a token of NOC staff has no rights of the NOC.
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
    # A former member of the NOC may still have a token with the scope ``noc``. It must not be sufficient.
    enough = {Scope.ORDER, Scope.NOC} if token.user.is_noc else {Scope.ORDER}
    if not enough & set(token.scopes):
        raise PermissionDenied(_("This API token may only read. Use one with the scope order or noc."))


def needs_scope(scope: str) -> str:
    """Return the error text for a token without this scope."""
    with in_readers_language():
        return gettext("This API token may not do this. Use one with the scope %(scope)s.") % {"scope": scope}


def _view(request: Request) -> Any:
    return (request.parser_context or {}).get("view")


_WINDOW_S = 60


class PerTokenAndUser(BaseThrottle):
    """Limit the requests of each token, and the requests of all tokens of a user together.

    ``LONGLINE_API_READS_PER_MIN`` and ``LONGLINE_API_WRITES_PER_MIN`` limit one token; 0 means no limit. All
    tokens of a user together may send ``LONGLINE_API_USER_LIMIT_FACTOR`` times as much, however many tokens
    the user has. A session without a token counts as a token of its user.

    The counters are in the cache. Their increments are atomic, unlike the increments in DRF's throttles. A
    request must not fail because the cache fails. While Redis cannot be reached, each process counts
    separately. A lost counter starts again from 0.
    """

    def allow_request(self, request: Request, view: Any) -> bool:
        if not request.user:
            return True
        for name, limit in _limits(request):
            if limit:
                count, self._wait = _count(name)
                if count > limit:
                    return False
        return True

    def wait(self) -> float:
        """Return the seconds until the next minute begins."""
        return self._wait


def _limits(request: Request) -> list[tuple[str, int]]:
    """Return the names and limits of the counters: first the token's, then the user's.

    A request that exceeds the token's limit does not increment the user's counter.
    """
    token = f"user-{request.user.pk}" if request.auth is None else f"token-{request.auth.pk}"
    reads = request.method in SAFE_METHODS
    limit = settings.LONGLINE_API_READS_PER_MIN if reads else settings.LONGLINE_API_WRITES_PER_MIN
    kind = "reads" if reads else "writes"
    return [
        (f"api-{kind}-{token}", limit),
        (f"api-{kind}-all-of-user-{request.user.pk}", limit * settings.LONGLINE_API_USER_LIMIT_FACTOR),
    ]


class PerAddress(BaseThrottle):
    """Limit the requests of each client address to ``LONGLINE_ENROL_PER_MIN``; 0 means no limit.

    This is for views that need no token. All clients on a Unix socket count as one address.
    """

    def allow_request(self, request: Request, view: Any) -> bool:
        if not settings.LONGLINE_ENROL_PER_MIN:
            return True
        count, self._wait = _count(f"enrol-{client_address(request._request) or 'local'}")
        return bool(count <= settings.LONGLINE_ENROL_PER_MIN)

    def wait(self) -> float:
        """Return the seconds until the next minute begins."""
        return self._wait


def _count(name: str) -> tuple[int, float]:
    """Increment a counter. Return its value in this minute, and the seconds until the next minute."""
    window, into = divmod(clock.now().timestamp(), _WINDOW_S)
    key = f"{name}-{int(window)}"
    try:
        count = int(cache.incr(key))
    except ValueError:
        # The counter did not exist: this is the first request of the minute, or the cache lost the counter.
        # If ``add`` fails, another request has created the counter in between.
        count = 1 if cache.add(key, 1, timeout=2 * _WINDOW_S) else _again(key)
    return count, _WINDOW_S - into


def _again(key: str) -> int:
    try:
        return int(cache.incr(key))
    except ValueError:
        # The counter disappeared between the two calls: the cache was flushed, or another cache took over.
        return 1
