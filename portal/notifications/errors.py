"""Errors about webhooks: types with facts, worded by ``portal.notifications.error_messages``."""

from portal.core.errors import Conflict, DomainError


class WebhookUrlUnreadable(DomainError):
    """The text is not an absolute http or https URL, or contains a user name, or is too long."""

    field = "url"


class WebhookPlainHttp(DomainError):
    """The URL is not https. Deliveries contain data of the customer, so they are encrypted."""

    field = "url"


class WebhookPortRefused(DomainError):
    """A port on which no web server is expected could belong to any other service."""

    port: int
    allowed: list[int]
    field: str = "url"


class WebhookAddressNotPublic(DomainError):
    """The host is an IP address of this host or of a network behind it."""

    host: str
    field: str = "url"


class TooManyWebhooks(Conflict):
    """There is a maximum of webhooks, because each event is sent to each of them."""

    maximum: int


class UnsubscribeLinkUnknown(DomainError):
    """The link is in no mail of the portal, or the account of its reader was deleted."""


class WebhookDisabled(Conflict):
    """The portal sends nothing to a disabled webhook."""


class DeliveryUnderWay(Conflict):
    """The delivery is pending and will be tried anyway."""
