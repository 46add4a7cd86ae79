"""The documentation that `make docs` builds: a site for NOC staff and a site for customers."""

import os
from pathlib import Path

from django.conf import settings
from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils._os import safe_join
from django.utils.cache import patch_cache_control
from django.views.static import serve

from portal.accounts import permissions
from portal.web.page.base import SignedInRequest, requires


@requires(permissions.may_sign_in)
def documentation(request: SignedInRequest, path: str = "") -> HttpResponseBase:
    """Return a page or a file of the user's site.

    If the site is not installed, the response has status 404, and its page explains how to build the site.
    """
    folder = Path(settings.LONGLINE_DOCS_DIR) / ("staff" if request.user.is_noc else "customers")
    if not folder.is_dir():
        return render(request, "documentation/missing.html", {"folder": folder}, status=404)
    if not path or path.endswith("/"):
        path += "index.html"
    # For a name that the file system refuses (too long, or with a NUL), os.path returns False. pathlib
    # raises.
    file = safe_join(folder, path)
    if os.path.isdir(file):
        return redirect("web:documentation", path=f"{path}/")
    if not os.path.exists(file):
        raise Http404
    response = serve(request, path, document_root=str(folder))
    # Only the user's browser may cache the file, and only for a short time, because the site may be rebuilt.
    patch_cache_control(response, private=True, max_age=300)
    return response
