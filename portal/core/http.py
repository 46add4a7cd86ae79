"""HTTP: addresses of callers and pages, an id and a log record per request, and the permission of each view.

Error responses, events and log records of the request contain the id. The log has one JSON object per line
with ``time``, ``level`` and ``msg``, as in the agents' log. Values in ``extra`` become further members. URLs
with secrets are masked in all records, including the records of libraries, because anybody who reads such a
URL could use it.

Every view declares a permission. A test finds views without one.
"""

import logging
import re
import uuid
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import cache, wraps
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from time import perf_counter
from typing import Any

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from structlog.typing import EventDict, WrappedLogger

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


class Middleware:
    """The constructor of each middleware, which Django calls."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response


class ForwardedProtoMiddleware(Middleware):
    """Set the scheme of the request, which Django uses for redirects, links and callback URLs.

    The WSGI server itself trusts no proxy (portal.processes.gunicorn_web), because it does not know
    ``LONGLINE_TRUSTED_PROXIES``.
    """

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        peer, scheme = _connected(request), request.headers.get("X-Forwarded-Proto", "").lower()
        if scheme == "https" and peer is not None and _trusted(peer):
            request.META["wsgi.url_scheme"] = "https"
        return self.get_response(request)


def absolute_url(path: str) -> str:
    """Return the absolute URL of a page."""
    return f"{settings.BASE_URL.rstrip('/')}{path}"


log = logging.getLogger("longline.request")

_ACCEPTABLE = re.compile(r"[A-Za-z0-9._-]{8,64}\Z")
# Monitoring systems request these every few seconds. Only failures are logged.
_PROBES = frozenset({"/healthz", "/readyz"})
current_request_id: ContextVar[str] = ContextVar("request_id", default="")


class RequestIdMiddleware(Middleware):
    """Give each request an id, return the id in ``X-Request-Id``, and log the request.

    The id is the caller's ``X-Request-Id`` if it is well formed; otherwise it is generated. The log record
    has no query string, which may contain text that people typed.
    """

    def __call__(self, request: HttpRequest) -> HttpResponse:
        began = perf_counter()
        given = request.headers.get("X-Request-Id", "")
        request_id = given if _ACCEPTABLE.match(given) else uuid.uuid4().hex
        token = current_request_id.set(request_id)
        try:
            response = self.get_response(request)
        finally:
            current_request_id.reset(token)
        response["X-Request-Id"] = request_id
        if request.path not in _PROBES or response.status_code >= 400:
            log.info(
                "request",
                extra={
                    "method": request.method,
                    "path": request.path,
                    "status": response.status_code,
                    "duration_s": round(perf_counter() - began, 6),
                    "request_id": request_id,
                },
            )
        return response


def masked(value: Any) -> Any:
    """Return ``value`` with secrets in URLs replaced by "…".

    Secrets are the rest of a path after one of ``SECRET_ADDRESSES``, and the query of any URL. Mappings and
    sequences are searched recursively. Values of other types than JSON's are converted to text.
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {name: masked(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [masked(each) for each in value]
    return _secrets().sub(r"\g<shown>…", value if isinstance(value, str) else repr(value))


@cache
def _secrets() -> re.Pattern[str]:
    below = "|".join(map(re.escape, settings.SECRET_ADDRESSES))
    query = r"""/[^\s"'<>?]*\?"""
    return re.compile(rf"""(?P<shown>{below}|{query})[^\s"'<>]+""")


def formatter() -> structlog.stdlib.ProcessorFormatter:
    """Return the formatter for ``logging.config``. It also formats the records of libraries."""
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.ExtraAdder(), _facts],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            structlog.processors.format_exc_info,
            _without_secrets,
            structlog.processors.EventRenamer("msg"),
            structlog.processors.JSONRenderer(),
        ],
    )


def _facts(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    record: Any = event["_record"]
    event["level"], event["logger"] = record.levelname, record.name
    if request_id := current_request_id.get():
        event.setdefault("request_id", request_id)
    return event


def _without_secrets(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    # Django adds the request to its records. The text of a request contains the whole URL.
    event.pop("request", None)
    return {name: masked(value) for name, value in event.items()}


Permission = Callable[..., bool]
View = Callable[..., HttpResponseBase]


def declare(view: View, permission: Permission) -> View:
    """Record a view's permission. The view itself must check it."""
    view.__dict__["permission"] = permission
    return view


def declared(view: View) -> Permission | None:
    """Return the permission that the view declares; None if it declares none."""
    return view.__dict__.get("permission")


def public(view: View) -> View:
    """Declare that a view is for everybody, signed in or not."""

    @wraps(view)
    def open_to_all(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
        return view(request, **arguments)

    return declare(open_to_all, _anybody)


def _anybody(user: Any) -> bool:
    return True
