"""Customers who order continuously and retry after errors, and clients that only read."""

import http.client
import json
import socket
import ssl
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Self
from uuid import uuid4

from drills.ha.cluster import PAIRS, PORTAL_NAME, VIRTUAL_IP, Cluster

# Each customer keeps this number of lines. After that, the oldest line is removed for every new line.
_LINES_KEPT = 8
_PATIENCE_S = 15.0
_RETRY_S = 0.3
_READ_EVERY_S = 0.5
_ACCEPTED = 202
# These statuses mean a fault of the portal or of the path to it, and not a fault of the order.
_SERVER_ERROR, _TOO_MANY = 500, 429


@dataclass(frozen=True, slots=True)
class Accepted:
    """An order with a 202 response at the time `at` (monotonic seconds). `description` is "" for
    a removal.
    """

    at: float
    order: str
    vll: str
    description: str


@dataclass
class Tally:
    """All responses so far. The lists only grow."""

    accepted: list[Accepted] = field(default_factory=list)
    # The descriptions of all orders that were sent, with or without a response.
    described: list[str] = field(default_factory=list)
    # For each failed request: time, request, and status or error.
    failed: list[tuple[float, str, str]] = field(default_factory=list)
    # Orders that were refused because of their content. Only removals that come too early may be refused.
    refused: list[str] = field(default_factory=list)
    reads: int = 0


class Pair:
    """Two ports, one on each router, that only one customer uses, and the lines between them."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        self.ports: list[int] = [
            cluster.rows["ports"][f"{router}/memif{number}/0"] for router in ("rhino", "hippo")
        ]
        self.vlans = count(1)
        self.lines = deque[str]()


class Customers:
    """The load, as long as the context lasts: customers send `orders_per_s` orders in total.

    `readers` is the number of clients that read lists and orders.
    """

    def __init__(self, cluster: Cluster, pairs: list[Pair], *, orders_per_s: float, readers: int) -> None:
        self.tally = Tally()
        self._token = cluster.rows["customer_token"]
        self._period_s = PAIRS / orders_per_s
        self._enough = threading.Event()
        self._threads = [
            threading.Thread(target=self._order_on, args=(pair, at / len(pairs)))
            for at, pair in enumerate(pairs)
        ]
        self._threads += [threading.Thread(target=self._read_on) for _ in range(readers)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop sending, and wait for the last responses."""
        self._enough.set()
        for thread in self._threads:
            thread.join()

    def _order_on(self, pair: Pair, phase: float) -> None:
        caller = _Caller(self._token)
        due = time.monotonic() + self._period_s * phase
        while not self._enough.wait(max(0.0, due - time.monotonic())):
            due = max(due + self._period_s, time.monotonic())
            if len(pair.lines) < _LINES_KEPT or not self._remove(caller, pair.lines.popleft()):
                vll = self._add(caller, pair.ports, next(pair.vlans))
                if vll is not None:
                    pair.lines.append(vll)

    def _add(self, caller: "_Caller", ports: list[int], vlan: int) -> str | None:
        key = str(uuid4())
        ends = [{"tagging": "dot1q", "outer_vlan": vlan, "port": port} for port in ports]
        body = {
            "a_end": ends[0],
            "z_end": ends[1],
            "svc_mtu": 1500,
            "cir_bps": 1_000_000,
            "transport": "auto",
        }
        self.tally.described.append(key)
        status, response = self._insist(
            caller, "POST", "/api/v1/vlls", json.dumps(body | {"description": key}), {"Idempotency-Key": key}
        )
        if status != _ACCEPTED:
            self.tally.refused.append(f"{status} {response}")
            return None
        vll: str = response["vll"]["id"]
        self.tally.accepted.append(Accepted(time.monotonic(), response["order"]["id"], vll, key))
        return vll

    def _remove(self, caller: "_Caller", vll: str) -> bool:
        """Order the removal of a line. Return whether the portal accepted the order.

        Return False for a line that has an open order or is already being removed.
        """
        path = f"/api/v1/vlls/{vll}?cooling_off=0"
        status, response = self._insist(caller, "DELETE", path, "", {"Idempotency-Key": str(uuid4())})
        if status == _ACCEPTED:
            self.tally.accepted.append(Accepted(time.monotonic(), response["order"]["id"], vll, ""))
        return status == _ACCEPTED

    def _insist(
        self, caller: "_Caller", method: str, path: str, body: str, headers: dict[str, str]
    ) -> tuple[int, Any]:
        """Repeat the request until the portal accepts or refuses it, even after the end of the load."""
        while True:
            try:
                status, response = caller.call(method, path, body, headers)
            except (OSError, http.client.HTTPException) as problem:
                self.tally.failed.append((time.monotonic(), method, repr(problem)))
            else:
                if b"#idempotency-key-in-flight" in response:
                    # The portal is still processing an earlier attempt of this request, and the response to
                    # that attempt was lost.
                    time.sleep(_RETRY_S)
                    continue
                if status < _SERVER_ERROR and status != _TOO_MANY:
                    return status, json.loads(response)
                self.tally.failed.append((time.monotonic(), method, f"{status} {response[:200]!r}"))
            if self._enough.wait(_RETRY_S):
                time.sleep(_RETRY_S)

    def _read_on(self) -> None:
        caller = _Caller(self._token)
        while not self._enough.wait(_READ_EVERY_S):
            recent = self.tally.accepted[-1:]
            paths = ["/api/v1/vlls?limit=20", *(f"/api/v1/orders/{each.order}" for each in recent)]
            for path in paths:
                self.tally.reads += 1
                try:
                    status, response = caller.call("GET", path, "", {})
                except (OSError, http.client.HTTPException) as problem:
                    self.tally.failed.append((time.monotonic(), path, repr(problem)))
                    continue
                if status != 200:
                    self.tally.failed.append((time.monotonic(), path, f"{status} {response[:200]!r}"))


class _Caller:
    """One persistent connection to the virtual address."""

    def __init__(self, token: str) -> None:
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Host": PORTAL_NAME,
        }
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._context.check_hostname, self._context.verify_mode = False, ssl.CERT_NONE
        self._connection: http.client.HTTPSConnection | None = None

    def call(self, method: str, path: str, body: str, headers: dict[str, str]) -> tuple[int, bytes]:
        was_open = self._connection is not None
        try:
            return self._send_once(method, path, body, headers)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            self._drop()
            # A server may close an idle connection at any time. HTTP clients then retry (RFC 9110, 9.2.2).
            if not was_open:
                raise
            return self._send_once(method, path, body, headers)
        except (OSError, http.client.HTTPException):
            self._drop()
            raise

    def _send_once(self, method: str, path: str, body: str, headers: dict[str, str]) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(
                VIRTUAL_IP, timeout=_PATIENCE_S, context=self._context
            )
            self._connection.connect()
            self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection.request(method, path, body or None, {**self._headers, **headers})
        response = self._connection.getresponse()
        text = response.read()
        if response.will_close:
            self._drop()
        return response.status, text

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
