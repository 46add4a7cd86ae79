"""The command palette, which Ctrl-K opens on every page.

Without JavaScript, users reach the same pages through the menus and the search.
"""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from portal.accounts import permissions
from portal.web.command_palette import options_of
from portal.web.list_filters import LONGEST_SEARCH
from portal.web.page_guard import SignedInRequest, requires


@requires(permissions.may_sign_in)
@require_safe
def palette(request: SignedInRequest) -> HttpResponse:
    """Return the dialog of the palette; with ``?q=`` only the list of matching entries."""
    q = request.GET.get("q", "").replace("\0", "").strip()[:LONGEST_SEARCH]
    kinds = options_of(request.user, q)
    context = {"kinds": kinds, "count": sum(len(kind.options) for kind in kinds)}
    template = "command_palette/_options.html" if "q" in request.GET else "command_palette/_palette.html"
    return render(request, template, context)
