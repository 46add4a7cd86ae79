"""The page with the keyboard shortcuts."""

from django.http import HttpResponse
from django.shortcuts import render

from portal.accounts import permissions
from portal.web.navigation import pages_of
from portal.web.page_guard import SignedInRequest, requires


@requires(permissions.may_sign_in)
def shortcuts(request: SignedInRequest) -> HttpResponse:
    """Show the keyboard shortcuts. A request of htmx, which the key "?" sends, gets only the dialog."""
    template = "keyboard_shortcuts/_shortcuts.html" if request.htmx else "keyboard_shortcuts/shortcuts.html"
    return render(request, template, {"pages": [page for page in pages_of(request.user) if page.key]})
