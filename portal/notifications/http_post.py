"""One try: a POST to an address that nobody here trusts."""

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

# For all of it: looking up the name, connecting, TLS, sending, and an answer that drips.
TOTAL_S = 30.0
# Of the answer, headers included.
MOST_BYTES = 64 * 1024
# What is kept of it for the log.
_SHOWN_BYTES = 1000
_Error = Delivery.Error


@dataclass(frozen=True, slots=True)
class Outcome:
    """``error`` is "" when the receiver took it; ``answer``: how its answer began; ``retry_after``: what that
    header said."""

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
    """Send ``body``, follow no redirect, use no proxy, and never raise for what the other side does."""
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
    # PostgreSQL's text holds anything but this.
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
    asked = httpx.URL(url)
    if asked.scheme != "https" and not rules.plain_http:
        raise NotAllowed("plainHttp")
    backend = PinnedBackend(rules=rules, total_s=total_s, most_bytes=MOST_BYTES, resolve=resolve)
    target = httpcore.URL(
        scheme=asked.raw_scheme, host=asked.raw_host, port=asked.port, target=asked.raw_path
    )
    sent = [
        ("Host", asked.netloc.decode("ascii")),
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
    """The beginning of the answer. The status has been said: what goes wrong from here on changes nothing."""
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
    """Trusts what the world trusts and, where the ISP's own systems have certificates of its own, that CA."""
    context = httpx.create_ssl_context(trust_env=False)
    if settings.LONGLINE_WEBHOOK_CA_FILE:
        context.load_verify_locations(settings.LONGLINE_WEBHOOK_CA_FILE)
    return context
