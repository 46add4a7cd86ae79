"""Names for a form of the NOC's while they are written."""

from django.http import Http404, HttpResponse

from portal.accounts import permissions
from portal.web.access_control import SignedInRequest, requires
from portal.web.forms.autocomplete import ROWS, options, suggestions


@requires(permissions.may_run_the_network)
def suggest(request: SignedInRequest, of: str) -> HttpResponse:
    """Options of a datalist. ``?of=`` names the parameter in which the field sends what is written so far."""
    if of not in ROWS:
        raise Http404
    text = request.GET.get(request.GET.get("of", ""), "").replace("\0", "").strip()[:100]
    return HttpResponse(options(suggestions(of, text)))
