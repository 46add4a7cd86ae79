"""Webhooks and their deliveries in words."""

from typing import Any

from django import template
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.notifications.models import Delivery, Webhook
from portal.notifications.webhook_sentences import why_disabled

register = template.Library()

_STATES = {
    Delivery.State.PENDING: (gettext_noop("Pending"), "info"),
    Delivery.State.DELIVERED: (gettext_noop("Delivered"), "success"),
    Delivery.State.FAILED: (gettext_noop("Failed"), "danger"),
}
_ERRORS = {
    Delivery.Error.STATUS: gettext_noop("The receiver refused it"),
    Delivery.Error.REDIRECT: gettext_noop("The receiver sent a redirect, which is not followed"),
    Delivery.Error.GONE: gettext_noop("The receiver is gone for good"),
    Delivery.Error.TIMEOUT: gettext_noop("No complete answer in time"),
    Delivery.Error.UNREACHABLE: gettext_noop("No connection"),
    Delivery.Error.NO_SUCH_HOST: gettext_noop("The host name does not resolve"),
    Delivery.Error.NOT_PUBLIC: gettext_noop("The host name resolves to an address that is not public"),
    Delivery.Error.PORT: gettext_noop("The port is not allowed"),
    Delivery.Error.PLAIN_HTTP: gettext_noop("Only https is allowed"),
    Delivery.Error.TLS: gettext_noop("No trusted TLS certificate for this host name"),
    Delivery.Error.NOT_HTTP: gettext_noop("The answer is not HTTP, or is too long"),
}


@register.inclusion_tag("ui/badge.html")
def delivery_badge(delivery: Delivery) -> dict[str, str]:
    label, tone = _STATES[Delivery.State(delivery.state)]
    return {"label": _(label), "tone": tone}


@register.inclusion_tag("ui/badge.html")
def webhook_badge(webhook: Webhook) -> dict[str, str]:
    if webhook.disabled_at is not None:
        return {"label": why_disabled(webhook.disabled_because), "tone": "danger"}
    if webhook.failing_since is not None:
        return {"label": _("Failing"), "tone": "warning"}
    return {"label": _("Enabled"), "tone": "success"}


@register.filter
def outcome(delivery: Delivery) -> str:
    """The outcome of its last try: ``HTTP 200``, or why it failed."""
    if not delivery.log:
        return "–"
    last: dict[str, Any] = delivery.log[-1]
    status = f"HTTP {last['status']}" if last["status"] else ""
    error = _ERRORS.get(last["error"])
    return ": ".join(part for part in (_(error) if error else "", status) if part)
