"""The provider's name and look. A tag, because error pages and mails are rendered without a request."""

from django import template
from django.conf import settings

from portal.core.provider import Provider

register = template.Library()


@register.simple_tag
def provider() -> Provider:
    """Return the provider from the settings of the deployment (portal.core.provider)."""
    found: Provider = settings.LONGLINE_PROVIDER
    return found
