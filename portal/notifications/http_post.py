"""POST requests to receivers of webhooks, over connections to an address that has been checked."""

import itertools
import queue
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from typing import Any

import httpcore
import httpx
from django.conf import settings

from portal.notifications.models import Delivery
from portal.notifications.public_address_check import Address, NotAllowed, Rules

# The most addresses that are tried for a name.
_MOST_ADDRESSES = 8
# RFC 8305, section 8: try the next address after this time, while earlier attempts continue.
_NEXT_AFTER_S = 0.25
# The timeout of one address. It matters for addresses that drop packets.
_ADDRESS_S = 10.0
_WRITTEN_AT_ONCE = 16 * 1024


class NoSuchHost(Exception):
    """The name does not resolve."""


class TooMuch(Exception):
    """The response is longer than the limit."""


def resolve(host: str, port: int) -> list[Address]:
    """Return all IP addresses of ``host``. Raises NoSuchHost."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NoSuchHost(host) from error
    return list(dict.fromkeys(ip_address(entry[4][0]) for entry in found))


def by_turns(addresses: Sequence[Address]) -> list[Address]:
    """Return the addresses with alternating families (RFC 8305, section 4).

    The first address stays first. An unreachable family delays the other by only one attempt.
    """
    first = [each for each in addresses if each.version == addresses[0].version]
    other = [each for each in addresses if each.version != addresses[0].version]
    pairs = itertools.zip_longest(first, other)
    return [each for pair in pairs for each in pair if each is not None]


def _first_connection(addresses: Sequence[Address], port: int, *, left_s: float) -> httpcore.NetworkStream:
    """Return a connection to the address that responds first (RFC 8305).

    The attempts begin one after the other, and run in parallel. If all attempts fail, raises the
    httpcore.ConnectError or ConnectTimeout of the last failed attempt.
    """
    ended: queue.SimpleQueue[httpcore.NetworkStream | Exception] = queue.SimpleQueue()
    until = time.monotonic() + left_s
    taken = threading.Lock()

    def connect(address: Address) -> None:
        try:
            made = httpcore.SyncBackend().connect_tcp(
                str(address), port, timeout=min(_ADDRESS_S, max(until - time.monotonic(), 0.001))
            )
        except Exception as error:
            ended.put(error)
            return
        if taken.acquire(blocking=False):
            ended.put(made)
        else:
            made.close()

    waiting, running = list(addresses), 0
    refusal: Exception = httpcore.ConnectTimeout("no address answered in time")
    while waiting or running:
        if waiting:
            threading.Thread(target=connect, args=[waiting.pop(0)], daemon=True).start()
            running += 1
        left = until - time.monotonic()
        try:
            outcome = ended.get(timeout=max(min(_NEXT_AFTER_S, left) if waiting else left, 0))
        except queue.Empty:
            if left > 0 and waiting:
                continue
            break
        if not isinstance(outcome, Exception):
            return outcome
        running -= 1
        refusal = outcome
    # A connection may succeed just as the time runs out.
    while not taken.acquire(blocking=False):
        if not isinstance(late := ended.get(), Exception):
            return late
    raise refusal


class PinnedBackend(httpcore.NetworkBackend):
    """A network backend of httpcore for one exchange, within TOTAL_S and MOST_BYTES.

    Raises NotAllowed, NoSuchHost or TooMuch, and httpcore's own errors.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._limits = _Limits()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        addresses = self._resolved(host, port)
        for address in addresses:
            self._rules.check(address, port)
        if not addresses:
            raise NoSuchHost(host)
        made = _first_connection(by_turns(addresses)[:_MOST_ADDRESSES], port, left_s=self._limits.left())
        return _LimitedStream(made, self._limits)

    def _resolved(self, host: str, port: int) -> list[Address]:
        """Resolve the host in a separate thread, because a lookup that hangs cannot be interrupted."""
        answers: queue.SimpleQueue[list[Address] | Exception] = queue.SimpleQueue()

        def look_up() -> None:
            try:
                answers.put(resolve(host, port))
            except Exception as error:
                answers.put(error)

        threading.Thread(target=look_up, daemon=True).start()
        try:
            answer = answers.get(timeout=self._limits.left())
        except queue.Empty as error:
            raise httpcore.ConnectTimeout("the name was not resolved in time") from error
        if isinstance(answer, Exception):
            raise answer
        return answer


class _Limits:
    def __init__(self) -> None:
        self._end = time.monotonic() + TOTAL_S
        self._bytes_left = MOST_BYTES

    def left(self) -> float:
        """Return the remaining seconds of the exchange. Raises httpcore.ReadTimeout if none are left."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout("the time for this exchange is over")
        return left

    def allowance(self, wanted: int) -> int:
        if self._bytes_left <= 0:
            raise TooMuch
        return min(wanted, self._bytes_left)

    def took(self, count: int) -> None:
        self._bytes_left -= count


class _LimitedStream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, limits: _Limits) -> None:
        self._stream = stream
        self._limits = limits

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        found = self._stream.read(self._limits.allowance(max_bytes), timeout=self._limits.left())
        self._limits.took(len(found))
        return found

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _WRITTEN_AT_ONCE):
            self._stream.write(buffer[start : start + _WRITTEN_AT_ONCE], timeout=self._limits.left())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        secured = self._stream.start_tls(ssl_context, server_hostname, timeout=self._limits.left())
        return _LimitedStream(secured, self._limits)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


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


def post(url: str, body: bytes, *, headers: Sequence[tuple[str, str]], rules: Rules) -> Outcome:
    """Send ``body``, without following redirects and without a proxy.

    Faults of the receiver or of the network are part of the result and raise no exception.
    """
    began = time.monotonic()
    status, error, answer, retry_after = None, "", b"", ""
    try:
        status, answer, retry_after = _exchange(url, body, headers, rules)
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
    url: str, body: bytes, headers: Sequence[tuple[str, str]], rules: Rules
) -> tuple[int, bytes, str]:
    parsed = httpx.URL(url)
    if parsed.scheme != "https" and not rules.plain_http:
        raise NotAllowed("plainHttp")
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
        httpcore.ConnectionPool(ssl_context=_tls(), network_backend=PinnedBackend(rules)) as pool,
        pool.stream("POST", target, headers=sent, content=body) as response,
    ):
        found = (value for name, value in response.headers if name.lower() == b"retry-after")
        return response.status, _beginning(response), next(found, b"").decode("latin-1")


def _beginning(response: httpcore.Response) -> bytes:
    """Return the beginning of the body, despite errors while reading it: the status decides the result."""
    found = b""
    try:
        for part in response.iter_stream():
            found += part
            if len(found) >= _SHOWN_BYTES:
                break
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, TooMuch):
        pass
    return found[:_SHOWN_BYTES]


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
