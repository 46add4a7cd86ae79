"""The base of all views: the access check, and the message about the result of a button."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Protocol
from uuid import UUID

from allauth.account.decorators import reauthentication_required
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, resolve_url
from django_htmx.middleware import HtmxDetails

from portal.accounts.models import Customer, User
from portal.core.errors import DomainError
from portal.core.http import Permission, View, declare
from portal.vll import queries
from portal.vll.models import Vll
from portal.web.page.middleware import page_of

# A decorator for views that give or remove access. For a POST, an open session is not enough: the user must
# have entered the password or a code of the second factor within the last five minutes. The API has the same
# rule (portal.api.rest.access_control.ProvesIdentity).
proves_identity = reauthentication_required(enabled=lambda request: request.method not in ("GET", "HEAD"))


class SignedInRequest(HttpRequest):
    """The request that a view with ``requires`` receives."""

    user: User
    htmx: HtmxDetails


class Owned(Protocol):
    """An object that belongs to a customer or to the NOC."""

    @property
    def customer(self) -> Customer | None: ...


def requires(permission: Permission, *, of: Callable[..., Owned] | None = None) -> Callable[[View], View]:
    """Return a decorator that runs a view only for users with the permission.

    Users who are not signed in are redirected to the sign-in page. After signing in, they return to the page
    that they had open. This works even if they sent a form to an address that only accepts POST.

    Without ``of``, the permission is checked for the user alone. Otherwise ``of(user, **url_arguments)``
    returns the object, or raises Http404 if it is outside the user's scope. The permission is then checked
    for the object's customer. The view receives the object instead of the arguments. Without the permission,
    the response has status 403.
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

    Raises Http404 if the user may not see it.
    """
    return get_object_or_404(queries.with_last_order(queries.vlls(user)), pk=vll_id)


def _admit(allowed: bool) -> None:
    if not allowed:
        raise PermissionDenied


@contextmanager
def result_message(request: SignedInRequest, *, done: str = "") -> Iterator[None]:
    """Run the block. If it succeeds, show the message ``done``, unless it is "".

    If it raises a DomainError, show the sentence of the error and do not raise it further.
    """
    try:
        yield
    except DomainError as error:
        messages.error(request, error.sentence)
    else:
        if done:
            messages.success(request, done)
