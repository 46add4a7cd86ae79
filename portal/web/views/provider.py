"""The provider's logo and style sheet, which are public.

Each address contains a digest of the content, so that browsers can cache the content permanently. These files
come from settings, so they cannot be static files of Django.
"""

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from portal.accounts.language_middleware import without_text
from portal.core.provider import Served
from portal.core.view_permission import public


@without_text
@public
@require_safe
def logo(request: HttpRequest, digest: str) -> HttpResponse:
    """Return the logo, from the file in LONGLINE_PROVIDER_LOGO."""
    return _served(settings.LONGLINE_PROVIDER.logo, digest)


@without_text
@public
@require_safe
def style(request: HttpRequest, digest: str) -> HttpResponse:
    """Return the style sheet with the colour in LONGLINE_PROVIDER_COLOUR."""
    return _served(settings.LONGLINE_PROVIDER.style, digest)


def _served(found: Served | None, digest: str) -> HttpResponse:
    if found is None or found.digest != digest:
        raise Http404
    return HttpResponse(
        found.content,
        content_type=found.content_type,
        headers={"Cache-Control": "public, max-age=31536000, immutable"},
    )
