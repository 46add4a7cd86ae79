"""The provider's name, logo and colours: template tags, and the files that pages load."""

from django import template
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from portal.accounts.language import without_text
from portal.core.http import public
from portal.core.provider import Provider, Served

register = template.Library()


@register.simple_tag
def provider() -> Provider:
    """Return the provider from the settings (portal.core.provider)."""
    found: Provider = settings.LONGLINE_PROVIDER
    return found


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
