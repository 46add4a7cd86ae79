"""Errors about webhooks, with their facts. Their messages are in ``portal.notifications.error_messages``."""

from portal.core.errors import Conflict, DomainError


class WebhookUrlUnreadable(DomainError):
    """The text is not an absolute http or https URL, or the URL contains a user name or is too long."""

    field = "url"


class WebhookPlainHttp(DomainError):
    """The URL is not https. Deliveries contain data of the customer, so they are encrypted."""

    field = "url"


class WebhookPortRefused(DomainError):
    """Webhooks are not sent to this port, because it may belong to a service other than a web server."""

    port: int
    allowed: list[int]
    field: str = "url"


class WebhookAddressNotPublic(DomainError):
    """The host of the URL is an IP address of the portal's host or of a private network."""

    host: str
    field: str = "url"


class TooManyWebhooks(Conflict):
    """The customer or the NOC already has the maximum number of webhooks."""

    maximum: int


class UnsubscribeLinkUnknown(DomainError):
    """The link is not from a mail of the portal, or the reader's account was deleted."""


class WebhookDisabled(Conflict):
    """The portal sends nothing to a disabled webhook."""


class DeliveryUnderWay(Conflict):
    """The delivery is still pending and will be tried automatically."""
