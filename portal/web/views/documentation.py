"""The documentation site, as `make docs` builds it: one site for staff, one for customers."""

import mimetypes
from pathlib import Path

from django.conf import settings
from django.http import FileResponse, Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils._os import safe_join

from portal.accounts import permissions
from portal.web.page_guard import SignedInRequest, requires

# The first page of each site.
_FIRST = {"staff": "README/", "customers": "customers/README/"}


@requires(permissions.may_sign_in)
def documentation(request: SignedInRequest, path: str = "") -> HttpResponseBase:
    """Serve a page or a file of the reader's site.

    A portal that was installed without the site answers 404 with a page that says how to build it.
    """
    site = "staff" if request.user.is_noc else "customers"
    folder = Path(settings.LONGLINE_DOCS_DIR) / site
    if not folder.is_dir():
        return render(request, "documentation/missing.html", {"folder": folder}, status=404)
    if not path:
        return redirect("web:documentation", path=_FIRST[site])
    file = Path(safe_join(folder, path))
    if file.is_dir():
        if not path.endswith("/"):
            return redirect("web:documentation", path=f"{path}/")
        file /= "index.html"
    if not file.is_file():
        raise Http404
    # The response closes the file.
    return _cached(FileResponse(file.open("rb"), content_type=mimetypes.guess_type(file.name)[0]))


def _cached(response: FileResponse) -> HttpResponse | FileResponse:
    """Let only the reader's browser cache the file, and only briefly, because the site may be rebuilt."""
    response["Cache-Control"] = "private, max-age=300"
    return response
