"""A template tag for the provider.

It is no context variable, because error pages and mails are rendered without a request.
"""

from django import template
from django.conf import settings

from portal.core.provider import Provider

register = template.Library()


@register.simple_tag
def provider() -> Provider:
    """Return the provider from the settings (portal.core.provider)."""
    found: Provider = settings.LONGLINE_PROVIDER
    return found
