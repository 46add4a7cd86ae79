"""The words for refusals about webhooks and mails."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.core.errors import TEXTS, wording
from portal.notifications import errors

TEXTS |= {
    errors.WebhookUrlUnreadable: gettext_noop(
        "This is not an address that can be called. Write one such as https://hooks.example.net/longline,"
        " without a user name, in at most 500 characters."
    ),
    errors.WebhookPlainHttp: gettext_noop(
        "What is sent is encrypted. Write an address that begins with https."
    ),
    errors.WebhookAddressNotPublic: gettext_noop(
        "{host} is not a public address. Write one that the Internet reaches."
    ),
    errors.TooManyWebhooks: gettext_noop(
        "There are {maximum} webhooks already, and there can be no more. Remove one first."
    ),
    errors.WebhookDisabled: gettext_noop("This webhook is disabled. Enable it first."),
    errors.DeliveryUnderWay: gettext_noop(
        "It has not been delivered yet, and will be tried again by itself."
    ),
    errors.UnsubscribeLinkUnknown: gettext_noop(
        "This link is not whole. Sign in, and choose there which mails you get."
    ),
}


@wording.register
def _port(error: errors.WebhookPortRefused) -> str:
    return _("Port {port} is not called. Choose from: {allowed}.").format(
        port=error.port, allowed=", ".join(map(str, error.allowed))
    )
