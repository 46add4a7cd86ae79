"""The caller, and the permission to use a view. The tenant scope decides which rows the view shows."""

from typing import Any

from django.utils.translation import gettext_noop as _
from rest_framework.exceptions import NotAuthenticated
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from portal.accounts.models import ApiToken, User


def caller(request: Request) -> User:
    """Return the user of this request. Raises NotAuthenticated without a user."""
    if not isinstance(request.user, User):
        raise NotAuthenticated
    return request.user


def token_of(request: Request) -> ApiToken | None:
    """Return the API token of the request, or None for a session."""
    return request.auth if isinstance(request.auth, ApiToken) else None


class IsNoc(BasePermission):
    """Allows only NOC staff, because customers must not see the network's internals."""

    message = _("Only NOC staff may see this.")

    def has_permission(self, request: Request, view: Any) -> bool:
        return caller(request).is_noc


class IsNocAdmin(BasePermission):
    """Allows only NOC admins, for example to remove objects and to undo removals."""

    message = _("Only NOC admins may do this.")

    def has_permission(self, request: Request, view: Any) -> bool:
        return caller(request).is_noc_admin
