"""Errors about webhooks, with their facts."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from portal.core.errors import Conflict, DomainError


class WebhookUrlUnreadable(DomainError):
    """The text is not an absolute http or https URL, or the URL contains a user name or is too long."""

    text = gettext_lazy(
        "Webhooks cannot be sent to this address. Enter one such as "
        "https://hooks.example.net/longline, without a user name, in at most 500 characters."
    )
    field = "url"


class WebhookPlainHttp(DomainError):
    """The URL is not https. Deliveries contain data of the customer, so they are encrypted."""

    text = gettext_lazy("Webhooks are only sent encrypted. Enter an address that begins with https.")
    field = "url"


class WebhookPortRefused(DomainError):
    """Webhooks are not sent to this port, because it may belong to a service other than a web server."""

    port: int
    allowed: list[int]
    field: str = "url"

    @property
    def sentence(self) -> str:
        return _("Webhooks are not sent to port {port}. Choose from: {allowed}.").format(
            port=self.port, allowed=", ".join(map(str, self.allowed))
        )


class WebhookAddressNotPublic(DomainError):
    """The host of the URL is an IP address of the portal's host or of a private network."""

    text = gettext_lazy("{host} is not a public address. Enter one that can be reached from the Internet.")
    host: str
    field: str = "url"


class TooManyWebhooks(Conflict):
    """The customer or the NOC already has the maximum number of webhooks."""

    text = gettext_lazy("There are already {maximum} webhooks, which is the limit. Remove one first.")
    maximum: int


class UnsubscribeLinkUnknown(DomainError):
    """The link is not from a mail of the portal, or the reader's account was deleted."""

    text = gettext_lazy("This link is incomplete. Sign in and choose your notifications there.")


class WebhookDisabled(Conflict):
    """The portal sends nothing to a disabled webhook."""

    text = gettext_lazy("This webhook is disabled. Enable it first.")


class DeliveryUnderWay(Conflict):
    """The delivery is still pending and will be tried automatically."""

    text = gettext_lazy("The message has not been delivered yet. The portal retries it automatically.")
