"""Addresses: of the caller, and of the portal's pages in mails and in responses of the API."""

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

Address = IPv4Address | IPv6Address


def client_address(request: HttpRequest) -> Address | None:
    """Return the caller's address, or None on a Unix socket.

    ``X-Forwarded-For`` is read from its end, because each proxy appends an address. An entry is used only if
    the proxy that wrote the entry is in ``LONGLINE_TRUSTED_PROXIES``. Entries that a caller invents precede
    these entries and are ignored.
    """
    address = _connected(request)
    hops = [hop for hop in request.headers.get("X-Forwarded-For", "").split(",") if hop.strip()]
    while address is not None and hops and _trusted(address):
        hop = _read(hops.pop())
        if hop is None:
            break
        address = hop
    return address


def _connected(request: HttpRequest) -> Address | None:
    return _read(request.META.get("REMOTE_ADDR", ""))


def _trusted(address: Address) -> bool:
    return any(address in ip_network(network) for network in settings.LONGLINE_TRUSTED_PROXIES)


def _read(text: str) -> Address | None:
    try:
        address = ip_address(text.strip())
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


class ForwardedProtoMiddleware:
    """Set the scheme of the request, which Django uses for redirects, links and callback URLs.

    The WSGI server itself trusts no proxy (portal.processes.gunicorn_web), because it does not know
    ``LONGLINE_TRUSTED_PROXIES``.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        peer, scheme = _connected(request), request.headers.get("X-Forwarded-Proto", "").lower()
        if scheme == "https" and peer is not None and _trusted(peer):
            request.META["wsgi.url_scheme"] = "https"
        return self._get_response(request)


def absolute_url(path: str) -> str:
    """Return the absolute URL of a page."""
    return f"{settings.BASE_URL.rstrip('/')}{path}"
