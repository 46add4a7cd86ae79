"""The caller of a request, and the permission to use a view.

These classes do not select rows. The tenant scope decides which rows a view shows.
"""

from typing import Any

from allauth.account.decorators import reauthentication_required
from allauth.core.exceptions import ReauthenticationRequired
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _
from rest_framework import status
from rest_framework.exceptions import APIException, NotAuthenticated
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from portal.accounts.language import in_readers_language
from portal.accounts.models import ApiToken, User
from portal.core.http import absolute_url


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

    Pages have the same rule (``portal.web.page.page_guard.proves_identity``). API tokens are not affected:
    their     scopes limit them instead. A view in which only some methods need the proof lists them in
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
    """Raise ReauthenticationRequired if no password or code was entered recently. The returned response is
    not used.
    """
    return HttpResponse()
