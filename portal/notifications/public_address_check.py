"""The check that a webhook's target is allowed. It checks the IP addresses of the host, and not its name.

Without the check, users could make the portal send requests to internal hosts (SSRF).
"""

import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

import httpx
from django.conf import settings

from portal.accounts.models import Network
from portal.notifications import errors

Address = IPv4Address | IPv6Address
LONGEST_URL = 500
_PORTS = {"https": 443, "http": 80}
# IPv6 networks whose addresses contain an IPv4 address, which is checked instead: IPv4-mapped addresses
# (RFC 4291) and NAT64 (RFC 6052).
_WITH_IPV4_LAST = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))
# All global unicast IPv6 addresses (RFC 4291, section 2.4).
_GLOBAL_IPV6 = IPv6Network("2000::/3")
# Networks that never count as public here, although some releases of Python's ipaddress count them as global.
# They are protocol assignments (RFC 6890), 6to4 and its relays (RFC 3056, 7526), Teredo and the rest of its
# block (RFC 2928), and documentation (RFC 9637).
_NEVER = tuple(
    ip_network(text) for text in ("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "2002::/16", "3fff::/20")
)


class NotAllowed(Exception):
    """A refused target. The message is the reason: ``notPublic``, ``port`` or ``plainHttp``."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules for targets of webhooks.

    ``networks``: networks that are allowed on any port, even if they are not public. ``ports``: the ports
    that are allowed at public addresses. ``plain_http``: whether http is allowed.
    """

    networks: tuple[Network, ...]
    ports: frozenset[int]
    plain_http: bool

    def check(self, address: Address, port: int) -> None:
        """Check one address. Raises NotAllowed."""
        if any(address.version == network.version and address in network for network in self.networks):
            return
        if not is_public(address):
            raise NotAllowed("notPublic")
        if port not in self.ports:
            raise NotAllowed("port")


def rules(*, of_the_noc: bool) -> Rules:
    """Return the rules from the settings. For the NOC's own webhooks, further networks are allowed."""
    networks = [*settings.LONGLINE_WEBHOOK_NETWORKS]
    if of_the_noc:
        networks += settings.LONGLINE_WEBHOOK_NOC_NETWORKS
    return Rules(
        networks=tuple(ip_network(text) for text in networks),
        ports=frozenset(settings.LONGLINE_WEBHOOK_PORTS),
        plain_http=settings.LONGLINE_WEBHOOK_ALLOW_HTTP,
    )


def is_public(address: Address) -> bool:
    """Return whether the address is a public unicast address of the Internet."""
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return False
        if any(address in prefix for prefix in _WITH_IPV4_LAST):
            return is_public(IPv4Address(int(address) & 0xFFFFFFFF))
        if address not in _GLOBAL_IPV6:
            return False
    if any(address.version == network.version and address in network for network in _NEVER):
        return False
    return address.is_global and not address.is_multicast


def usable_url(text: str, *, allowed: Rules) -> str:
    """Return a webhook's URL in its stored form, after the checks that need no DNS.

    The addresses of a host name are checked before each request. Raises WebhookUrlUnreadable,
    WebhookPlainHttp, WebhookPortRefused, or WebhookAddressNotPublic if the host is an IP address.
    """
    url = _read(text)
    if url.scheme == "http" and not allowed.plain_http:
        raise errors.WebhookPlainHttp
    port = url.port or _PORTS[url.scheme]
    for address in _written_as_number(url.host):
        try:
            allowed.check(address, port)
        except NotAllowed as refusal:
            if str(refusal) == "port":
                raise errors.WebhookPortRefused(port=port, allowed=sorted(allowed.ports)) from refusal
            raise errors.WebhookAddressNotPublic(host=url.host) from refusal
    if port not in allowed.ports and not allowed.networks:
        raise errors.WebhookPortRefused(port=port, allowed=sorted(allowed.ports))
    return str(url)


def _read(text: str) -> httpx.URL:
    try:
        url = httpx.URL(text.strip()).copy_with(fragment=None)
    except (httpx.InvalidURL, ValueError) as error:
        raise errors.WebhookUrlUnreadable from error
    # httpx writes characters that are invalid in host names with per cent signs.
    named = url.host and "%" not in url.host
    if url.scheme not in _PORTS or not named or url.userinfo or len(str(url)) > LONGEST_URL:
        raise errors.WebhookUrlUnreadable
    return url


def _written_as_number(host: str) -> list[Address]:
    """Return the address if the host is one, also in forms such as ``2130706433`` and ``0x7f.1``; no DNS."""
    try:
        found = socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [ip_address(entry[4][0]) for entry in found]
