"""One attempt at a delivery: a POST request to a host that the portal does not trust."""

import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import httpcore
import httpx
from django.conf import settings

from portal.notifications.models import Delivery
from portal.notifications.pinned_connections import NoSuchHost, PinnedBackend, Resolve, TooMuch, resolve
from portal.notifications.public_address_check import NotAllowed, Rules

# The time limit (s) for the whole exchange: name resolution, connection, TLS, request and response.
TOTAL_S = 30.0
# The size limit for the response, including headers.
MOST_BYTES = 64 * 1024
# The log shows this many bytes from the beginning of a response.
_SHOWN_BYTES = 1000
_Error = Delivery.Error


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an attempt.

    ``status``: the HTTP status; None without a response. ``error``: "" if the receiver accepted the delivery.
    ``answer``: the beginning of the response. ``retry_after``: the value of the header Retry-After.
    """

    status: int | None
    error: str
    answer: str
    took_ms: int
    retry_after: str = ""

    @property
    def delivered(self) -> bool:
        return self.error == _Error.NONE


def post(
    url: str,
    body: bytes,
    *,
    headers: Sequence[tuple[str, str]],
    rules: Rules,
    resolve: Resolve = resolve,
    total_s: float = TOTAL_S,
) -> Outcome:
    """Send ``body``, without following redirects and without a proxy.

    Faults of the receiver or of the network are part of the result and raise no exception.
    """
    began = time.monotonic()
    status, error, answer, retry_after = None, "", b"", ""
    try:
        status, answer, retry_after = _exchange(url, body, headers, rules, resolve, total_s)
        error = _error_of(status)
    except NotAllowed as refusal:
        error = str(refusal)
    except NoSuchHost:
        error = _Error.NO_SUCH_HOST
    except httpcore.TimeoutException:
        error = _Error.TIMEOUT
    except (httpcore.NetworkError, OSError) as failure:
        error = _Error.TLS if _is_of_tls(failure) else _Error.UNREACHABLE
    except (httpcore.ProtocolError, TooMuch):
        error = _Error.NOT_HTTP
    # PostgreSQL's text cannot contain NUL.
    text = answer.decode("utf-8", errors="replace").replace("\0", "\ufffd")
    return Outcome(status, error, text, round((time.monotonic() - began) * 1000), retry_after)


def _exchange(
    url: str,
    body: bytes,
    headers: Sequence[tuple[str, str]],
    rules: Rules,
    resolve: Resolve,
    total_s: float,
) -> tuple[int, bytes, str]:
    parsed = httpx.URL(url)
    if parsed.scheme != "https" and not rules.plain_http:
        raise NotAllowed("plainHttp")
    backend = PinnedBackend(rules=rules, total_s=total_s, most_bytes=MOST_BYTES, resolve=resolve)
    target = httpcore.URL(
        scheme=parsed.raw_scheme, host=parsed.raw_host, port=parsed.port, target=parsed.raw_path
    )
    sent = [
        ("Host", parsed.netloc.decode("ascii")),
        ("Content-Type", "application/json"),
        ("User-Agent", "Longline-Webhooks/1"),
        *headers,
    ]
    with (
        httpcore.ConnectionPool(ssl_context=_tls(), network_backend=backend) as pool,
        pool.stream("POST", target, headers=sent, content=body) as response,
    ):
        return response.status, _beginning(response), _retry_after(response)


def _beginning(response: httpcore.Response) -> bytes:
    """Return the beginning of the response's body.

    Errors while reading it are ignored, because the status already decides the result.
    """
    found = b""
    try:
        for part in response.iter_stream():
            found += part
            if len(found) >= _SHOWN_BYTES:
                break
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, TooMuch):
        pass
    return found[:_SHOWN_BYTES]


def _retry_after(response: httpcore.Response) -> str:
    found = (value for name, value in response.headers if name.lower() == b"retry-after")
    return next(found, b"").decode("latin-1")


def _error_of(status: int) -> str:
    if 200 <= status < 300:
        return _Error.NONE
    if status == 410:
        return _Error.GONE
    return _Error.REDIRECT if 300 <= status < 400 else _Error.STATUS


def _is_of_tls(failure: BaseException | None) -> bool:
    while failure is not None:
        if isinstance(failure, ssl.SSLError):
            return True
        failure = failure.__cause__ or failure.__context__
    return False


@cache
def _tls() -> ssl.SSLContext:
    """Return a TLS context that trusts public CAs, and the CA in LONGLINE_WEBHOOK_CA_FILE if that is set."""
    context = httpx.create_ssl_context(trust_env=False)
    if settings.LONGLINE_WEBHOOK_CA_FILE:
        context.load_verify_locations(settings.LONGLINE_WEBHOOK_CA_FILE)
    return context
