"""Suggestions for the NOC's forms: names that match the typed text, and the interfaces of a router."""

from django.http import Http404, HttpResponse

from portal.accounts import permissions
from portal.web.fields.autocomplete import ROWS, options, suggestions
from portal.web.fields.interface_choice import reported_list, router_named
from portal.web.page.page_guard import SignedInRequest, requires


@requires(permissions.may_run_the_network)
def suggest(request: SignedInRequest, of: str) -> HttpResponse:
    """Return the options of a datalist. ``?of=`` is the name of the parameter with the typed text."""
    if of not in ROWS:
        raise Http404
    text = request.GET.get(request.GET.get("of", ""), "").replace("\0", "").strip()[:100]
    return HttpResponse(options(suggestions(of, text)))


@requires(permissions.may_run_the_network)
def interfaces(request: SignedInRequest) -> HttpResponse:
    """Return the list of the interfaces that a router reports, for the field ``?field=``.

    ``?of=`` is the name of the parameter with the router.
    """
    field, of = (request.GET.get(name, "") for name in ("field", "of"))
    if not (field.isidentifier() and of.isidentifier()):
        raise Http404
    return HttpResponse(reported_list(field, of, router_named(request.GET.get(of))))
