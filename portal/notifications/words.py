"""The words for refusals about webhooks."""

from django.utils.translation import gettext as _

from portal.notifications import errors
from portal.vll.words import sentence


@sentence.register
def _unreadable(error: errors.WebhookUrlUnreadable) -> str:
    return _(
        "This is not an address that can be called. Write one such as https://hooks.example.net/longline,"
        " without a user name, in at most 500 characters."
    )


@sentence.register
def _plain_http(error: errors.WebhookPlainHttp) -> str:
    return _("What is sent is encrypted. Write an address that begins with https.")


@sentence.register
def _port(error: errors.WebhookPortRefused) -> str:
    return _("Port {port} is not called. Choose from: {allowed}.").format(
        port=error.port, allowed=", ".join(map(str, error.allowed))
    )


@sentence.register
def _not_public(error: errors.WebhookAddressNotPublic) -> str:
    return _("{host} is not a public address. Write one that the Internet reaches.").format(host=error.host)


@sentence.register
def _too_many(error: errors.TooManyWebhooks) -> str:
    return _("There are {maximum} webhooks already, and there can be no more. Remove one first.").format(
        maximum=error.maximum
    )


@sentence.register
def _disabled(error: errors.WebhookDisabled) -> str:
    return _("This webhook is disabled. Enable it first.")


@sentence.register
def _under_way(error: errors.DeliveryUnderWay) -> str:
    return _("It has not been delivered yet, and will be tried again by itself.")


@sentence.register
def _unsubscribe(error: errors.UnsubscribeLinkUnknown) -> str:
    return _("This link is not whole. Sign in, and choose there which mails you get.")
