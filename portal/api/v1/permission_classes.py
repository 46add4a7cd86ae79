"""The caller, and the callers that may use a view at all; what it then shows is a matter of tenant scope."""

from typing import Any

from django.utils.translation import gettext_noop as _
from rest_framework.exceptions import NotAuthenticated
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from portal.accounts.models import ApiToken, User


def caller(request: Request) -> User:
    """The user behind this request; NotAuthenticated for nobody."""
    if not isinstance(request.user, User):
        raise NotAuthenticated
    return request.user


def token_of(request: Request) -> ApiToken | None:
    """The API token that the caller acts through; None for a session."""
    return request.auth if isinstance(request.auth, ApiToken) else None


class IsNoc(BasePermission):
    """NOC staff only: the inside of the network is nobody else's business."""

    message = _("Only NOC staff may see this.")

    def has_permission(self, request: Request, view: Any) -> bool:
        return caller(request).is_noc


class IsNocAdmin(BasePermission):
    """NOC admins only: they remove, and take removals back."""

    message = _("Only NOC admins may do this.")

    def has_permission(self, request: Request, view: Any) -> bool:
        return caller(request).is_noc_admin
