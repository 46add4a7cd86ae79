"""Error messages about webhooks and mails."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.core.errors import TEXTS, wording
from portal.notifications import errors

TEXTS |= {
    errors.WebhookUrlUnreadable: gettext_noop(
        "Webhooks cannot be sent to this address. Enter one such as "
        "https://hooks.example.net/longline, without a user name, in at most 500 characters."
    ),
    errors.WebhookPlainHttp: gettext_noop(
        "Webhooks are only sent encrypted. Enter an address that begins with https."
    ),
    errors.WebhookAddressNotPublic: gettext_noop(
        "{host} is not a public address. Enter one that can be reached from the Internet."
    ),
    errors.TooManyWebhooks: gettext_noop(
        "There are already {maximum} webhooks, which is the limit. Remove one first."
    ),
    errors.WebhookDisabled: gettext_noop("This webhook is disabled. Enable it first."),
    errors.DeliveryUnderWay: gettext_noop(
        "The message has not been delivered yet. The portal retries it automatically."
    ),
    errors.UnsubscribeLinkUnknown: gettext_noop(
        "This link is incomplete. Sign in and choose your notifications there."
    ),
}


@wording.register
def _port(error: errors.WebhookPortRefused) -> str:
    return _("Webhooks are not sent to port {port}. Choose from: {allowed}.").format(
        port=error.port, allowed=", ".join(map(str, error.allowed))
    )
