"""The settings for NetBox (docs/integrate/netbox.md) as one object."""

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The settings for NetBox.

    ``ca``: a file with CA certificates; "" for the CAs of the system. ``timeout_s`` and ``total_s``: the
    limits (s) for one read and for a whole response. ``page``: the number of objects per page. ``roles`` and
    ``device_tags``: slugs. A device is imported as a router if it has one of the roles and all of the tags.
    """

    url: str
    token: str
    ca: str = ""
    timeout_s: float = 20
    total_s: float = 120
    page: int = 250
    every: timedelta = timedelta(minutes=15)
    applies: bool = True
    roles: tuple[str, ...] = ("router",)
    device_tags: tuple[str, ...] = ()
    tenant_tags: tuple[str, ...] = ()
    uni_tag: str = "longline-uni"
    enni_tag: str = "longline-enni"
    customer_field: str = "longline_customer"
    loopback_interface: str = "loop0"
    removes_at_the_end: bool = True
    base_url: str = ""


def configuration() -> Configuration | None:
    """Return the configuration; None if no NetBox is configured."""
    if not settings.NETBOX_URL:
        return None
    return Configuration(
        url=settings.NETBOX_URL.rstrip("/"),
        token=settings.NETBOX_TOKEN,
        ca=settings.NETBOX_CA,
        timeout_s=settings.NETBOX_TIMEOUT_S,
        total_s=settings.NETBOX_TOTAL_S,
        page=settings.NETBOX_PAGE,
        every=timedelta(seconds=settings.NETBOX_SYNC_EVERY_S),
        applies=settings.NETBOX_APPLY,
        roles=tuple(settings.NETBOX_DEVICE_ROLES),
        device_tags=tuple(settings.NETBOX_DEVICE_TAGS),
        tenant_tags=tuple(settings.NETBOX_TENANT_TAGS),
        uni_tag=settings.NETBOX_UNI_TAG,
        enni_tag=settings.NETBOX_ENNI_TAG,
        customer_field=settings.NETBOX_CUSTOMER_FIELD,
        loopback_interface=settings.NETBOX_LOOPBACK_INTERFACE,
        removes_at_the_end=settings.NETBOX_AT_END == "remove",
        base_url=settings.BASE_URL.rstrip("/"),
    )
