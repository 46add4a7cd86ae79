"""Whose portal it is. A tag, because pages of errors and mails are rendered without a request."""

from django import template
from django.conf import settings

from portal.core.provider import Provider

register = template.Library()


@register.simple_tag
def provider() -> Provider:
    """The provider, as the deployment says it (portal.core.provider)."""
    found: Provider = settings.LONGLINE_PROVIDER
    return found
