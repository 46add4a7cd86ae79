"""The provider's logo and colour, for everybody. Their addresses have the digests of their bytes, so they are
kept for ever; Django's static files know nothing of what a deployment chose."""

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
    """The file LONGLINE_PROVIDER_LOGO."""
    return _served(settings.LONGLINE_PROVIDER.logo, digest)


@without_text
@public
@require_safe
def style(request: HttpRequest, digest: str) -> HttpResponse:
    """The style sheet of LONGLINE_PROVIDER_COLOUR."""
    return _served(settings.LONGLINE_PROVIDER.style, digest)


def _served(found: Served | None, digest: str) -> HttpResponse:
    if found is None or found.digest != digest:
        raise Http404
    return HttpResponse(
        found.content,
        content_type=found.content_type,
        headers={"Cache-Control": "public, max-age=31536000, immutable"},
    )
