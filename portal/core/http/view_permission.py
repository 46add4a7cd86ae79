"""The permission that every view declares. A test finds views without a permission."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponseBase

Permission = Callable[..., bool]
View = Callable[..., HttpResponseBase]


def declare(view: View, permission: Permission) -> View:
    """Record a view's permission. The view itself must check it."""
    view.__dict__["permission"] = permission
    return view


def declared(view: View) -> Permission | None:
    """Return the permission that the view declares; None if it declares none."""
    return view.__dict__.get("permission")


def public(view: View) -> View:
    """Declare that a view is for everybody, signed in or not."""

    @wraps(view)
    def open_to_all(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
        return view(request, **arguments)

    return declare(open_to_all, _anybody)


def _anybody(user: Any) -> bool:
    return True
