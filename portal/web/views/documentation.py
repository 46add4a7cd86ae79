"""The documentation site, as `make docs` builds it: one site for staff, one for customers."""

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
from portal.web.page_guard import SignedInRequest, requires


@requires(permissions.may_sign_in)
def documentation(request: SignedInRequest, path: str = "") -> HttpResponseBase:
    """Serve a page or a file of the reader's site.

    A portal that was installed without the site answers 404 with a page that says how to build it.
    """
    folder = Path(settings.LONGLINE_DOCS_DIR) / ("staff" if request.user.is_noc else "customers")
    if not folder.is_dir():
        return render(request, "documentation/missing.html", {"folder": folder}, status=404)
    if not path or path.endswith("/"):
        path += "index.html"
    # Unlike pathlib, os.path takes a name that the file system refuses (too long, with a NUL) for absent.
    file = safe_join(folder, path)
    if os.path.isdir(file):
        return redirect("web:documentation", path=f"{path}/")
    if not os.path.exists(file):
        raise Http404
    response = serve(request, path, document_root=str(folder))
    # Only the browser of the reader may cache the file, and only briefly, because the site may be rebuilt.
    patch_cache_control(response, private=True, max_age=300)
    return response
