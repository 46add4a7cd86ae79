"""A person's own language, which goes before what the browser asks for."""

from django.http import HttpRequest, HttpResponseBase
from django.utils import translation

from portal.accounts.language import language_of
from portal.accounts.models import User
from portal.core.view_permission import View


class OwnLanguageMiddleware:
    """Answers in the language of whoever is signed in; LocaleMiddleware has taken the browser's before.

    Right before the view, which asks who it is in any case: this costs no statement.
    """

    def __init__(self, get_response: View) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: View, *arguments: object) -> None:
        if not getattr(view, "is_wordless", False):
            own_language_use(request)


def wordless(view: View) -> View:
    """Declare that a view's answer is the same for everybody, so that nobody asks who it is for."""
    view.is_wordless = True  # type: ignore[attr-defined]
    return view


def own_language_use(request: HttpRequest) -> None:
    """Write what follows in the language of whoever is signed in, if it is known."""
    user = request.user
    if isinstance(user, User) and user.language:
        translation.activate(language_of(user))
