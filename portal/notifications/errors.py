"""Refusals about webhooks: types with facts, worded by ``portal.notifications.error_messages``."""

from portal.core.errors import Conflict, DomainError


class WebhookUrlUnreadable(DomainError):
    """No absolute URL of http or https, or one with a user name in it, or a very long one."""

    field = "url"


class WebhookPlainHttp(DomainError):
    """The address is not https. Deliveries are the customer's business, so they are encrypted."""

    field = "url"


class WebhookPortRefused(DomainError):
    """A port on which no web server is expected could be any other service."""

    port: int
    allowed: list[int]
    field: str = "url"


class WebhookAddressNotPublic(DomainError):
    """The host is a number that belongs to this host or to a network behind it."""

    host: str
    field: str = "url"


class TooManyWebhooks(Conflict):
    """Each event is sent to each of them."""

    maximum: int


class UnsubscribeLinkUnknown(DomainError):
    """A link that no mail of ours had, or of somebody whose account is gone."""


class WebhookDisabled(Conflict):
    """Nothing is sent to it."""


class DeliveryUnderWay(Conflict):
    """It will be tried anyway."""
