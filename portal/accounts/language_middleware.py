"""Activation of the signed-in user's language, which takes precedence over the browser's language."""

from django.http import HttpRequest, HttpResponseBase
from django.utils import translation

from portal.accounts.language import language_of
from portal.accounts.models import User
from portal.core.http.view_permission import View


class OwnLanguageMiddleware:
    """Activate the language of the signed-in user, after LocaleMiddleware has activated the browser's.

    The middleware reads the user just before the view. It causes no additional query, because the view needs
    the user anyway.
    """

    def __init__(self, get_response: View) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: View, *arguments: object) -> None:
        if not getattr(view, "has_no_text", False):
            own_language_use(request)


def without_text(view: View) -> View:
    """Mark a view whose response contains no text. The middleware then does not read the user."""
    view.has_no_text = True  # type: ignore[attr-defined]
    return view


def own_language_use(request: HttpRequest) -> None:
    """Activate the language of the signed-in user, if the user has one."""
    user = request.user
    if isinstance(user, User) and user.language:
        translation.activate(language_of(user))
