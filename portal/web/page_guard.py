"""The access check of every page: sign-in, the object in the user's scope, and the permission."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol
from uuid import UUID

from allauth.account.decorators import reauthentication_required
from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, resolve_url
from django_htmx.middleware import HtmxDetails

from portal.accounts.models import Customer, User
from portal.core.view_permission import Permission, View, declare
from portal.vll import queries
from portal.vll.models import Vll
from portal.web.partial_requests import page_of

# For a POST that gives or removes access. An open session is not enough: the user must have entered the
# password or a code of the second factor within the last five minutes. The API has the same rule
# (portal.api.v1.permission_classes.ProvesIdentity).
proves_identity = reauthentication_required(enabled=lambda request: request.method not in ("GET", "HEAD"))


class SignedInRequest(HttpRequest):
    """The request that a guarded view receives."""

    user: User
    htmx: HtmxDetails


class Owned(Protocol):
    """An object that belongs to a customer or to the NOC."""

    @property
    def customer(self) -> Customer | None: ...


def requires(permission: Permission, *, of: Callable[..., Owned] | None = None) -> Callable[[View], View]:
    """Let a view run only for users whom ``permission`` admits; send visitors to sign in first.

    Without ``of``, the permission is checked for the user alone. With it, ``of(user, **url_arguments)`` finds
    the object in the user's scope (404 outside the scope). The permission is then checked for the object's
    customer (403 without the permission). The view receives the object instead of the arguments.

    Signing in leads back to the page, also where its form was sent to an address that only accepts POST.
    """

    def gate(view: View) -> View:
        @wraps(view)
        def gated(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return redirect_to_login(page_of(request) or resolve_url(settings.LOGIN_REDIRECT_URL))
            if of is None:
                _admit(permission(request.user))
                return view(request, **arguments)
            found = of(request.user, **arguments)
            _admit(permission(request.user, found.customer))
            return view(request, found)

        return declare(gated, permission)

    return gate


def visible_vll(user: User, vll_id: UUID) -> Vll:
    """Return the VLL with its ends and the state of its last order.

    Raises Http404 outside the user's scope.
    """
    return get_object_or_404(queries.with_last_order(queries.vlls(user)), pk=vll_id)


def _admit(allowed: bool) -> None:
    if not allowed:
        raise PermissionDenied
