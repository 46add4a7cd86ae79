"""Template tags and filters for webhooks and their deliveries."""

from typing import Any

from django import template
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.notifications.models import Delivery, Webhook
from portal.notifications.webhook_sentences import why_disabled
from portal.web.badge_markup import badge_markup

register = template.Library()

_STATES: dict[str, tuple[str, str]] = {
    Delivery.State.PENDING: (gettext_noop("Pending"), "info"),
    Delivery.State.DELIVERED: (gettext_noop("Delivered"), "success"),
    Delivery.State.FAILED: (gettext_noop("Failed"), "danger"),
}
_ERRORS = {
    Delivery.Error.STATUS: gettext_noop("The receiver refused it"),
    Delivery.Error.REDIRECT: gettext_noop("The receiver sent a redirect, which is not followed"),
    Delivery.Error.GONE: gettext_noop("The receiver is gone permanently"),
    Delivery.Error.TIMEOUT: gettext_noop("No complete answer in time"),
    Delivery.Error.UNREACHABLE: gettext_noop("No connection"),
    Delivery.Error.NO_SUCH_HOST: gettext_noop("The host name does not resolve"),
    Delivery.Error.NOT_PUBLIC: gettext_noop("The host name resolves to an address that is not public"),
    Delivery.Error.PORT: gettext_noop("The port is not allowed"),
    Delivery.Error.PLAIN_HTTP: gettext_noop("Only https is allowed"),
    Delivery.Error.TLS: gettext_noop("No trusted TLS certificate for this host name"),
    Delivery.Error.NOT_HTTP: gettext_noop("The answer is not HTTP, or is too long"),
}


@register.simple_tag
def delivery_badge(delivery: Delivery) -> SafeString:
    label, tone = _STATES.get(delivery.state, (delivery.state, "muted"))
    return badge_markup(_(label), tone)


@register.simple_tag
def webhook_badge(webhook: Webhook) -> SafeString:
    if webhook.disabled_at is not None:
        return badge_markup(why_disabled(webhook.disabled_because), "danger")
    if webhook.failing_since is not None:
        return badge_markup(_("Failing"), "warning")
    return badge_markup(_("Enabled"), "success")


@register.filter
def outcome(delivery: Delivery) -> str:
    """Return the result of the last attempt: the HTTP status, such as ``HTTP 200``, and the error if there
    was one.

    Return "–" before the first attempt.
    """
    if not delivery.log:
        return "–"
    last: dict[str, Any] = delivery.log[-1]
    status = f"HTTP {last['status']}" if last["status"] else ""
    error = _ERRORS.get(last["error"])
    return ": ".join(part for part in (_(error) if error else "", status) if part)
