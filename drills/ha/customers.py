"""Customers who order all the time and take no error for an answer, and readers beside them."""

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

# Each customer keeps so many lines: from then on every second order removes the oldest.
_LINES_KEPT = 8
_PATIENCE_S = 15.0
_AGAIN_S = 0.3
_READ_EVERY_S = 0.5
_ACCEPTED = 202
# What says that the portal or the way to it is at fault, and not the order.
_SERVER_ERROR, _TOO_MANY = 500, 429


@dataclass(frozen=True, slots=True)
class Accepted:
    """An order that was answered with 202, at `at` (monotonic seconds); `description`: "" of a removal."""

    at: float
    order: str
    vll: str
    description: str


@dataclass
class Tally:
    """What was answered so far. Lists only grow."""

    accepted: list[Accepted] = field(default_factory=list)
    # Every description that was ever sent, with or without an answer.
    described: list[str] = field(default_factory=list)
    # (when, what was asked, the status or what broke) of each request that failed.
    failed: list[tuple[float, str, str]] = field(default_factory=list)
    # Orders that were refused for what they ask: there should be none, removals that come too early apart.
    refused: list[str] = field(default_factory=list)
    reads: int = 0


class Pair:
    """Two ports, one on each router, that one customer has alone, and the lines between them."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        self.ports: list[int] = [
            cluster.rows["ports"][f"{router}/memif{number}/0"] for router in ("rhino", "hippo")
        ]
        self.vlans = count(1)
        self.lines = deque[str]()


class Customers:
    """`orders_per_s` of them all together, `readers` of lists and orders; while the context lasts."""

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
        """After the last answer."""
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
        status, answer = self._insist(
            caller, "POST", "/api/v1/vlls", json.dumps(body | {"description": key}), {"Idempotency-Key": key}
        )
        if status != _ACCEPTED:
            self.tally.refused.append(f"{status} {answer}")
            return None
        vll: str = answer["vll"]["id"]
        self.tally.accepted.append(Accepted(time.monotonic(), answer["order"]["id"], vll, key))
        return vll

    def _remove(self, caller: "_Caller", vll: str) -> bool:
        """Whether it was ordered now. A line that is still under way, or going already, is let be."""
        path = f"/api/v1/vlls/{vll}?cooling_off=0"
        status, answer = self._insist(caller, "DELETE", path, "", {"Idempotency-Key": str(uuid4())})
        if status == _ACCEPTED:
            self.tally.accepted.append(Accepted(time.monotonic(), answer["order"]["id"], vll, ""))
        return status == _ACCEPTED

    def _insist(
        self, caller: "_Caller", method: str, path: str, body: str, headers: dict[str, str]
    ) -> tuple[int, Any]:
        """The same request until somebody decides on it, also after the load has ended."""
        while True:
            try:
                status, answer = caller.call(method, path, body, headers)
            except (OSError, http.client.HTTPException) as problem:
                self.tally.failed.append((time.monotonic(), method, repr(problem)))
            else:
                if b"#idempotency-key-in-flight" in answer:
                    # The request whose answer we did not wait for is still being worked on.
                    time.sleep(_AGAIN_S)
                    continue
                if status < _SERVER_ERROR and status != _TOO_MANY:
                    return status, json.loads(answer)
                self.tally.failed.append((time.monotonic(), method, f"{status} {answer[:200]!r}"))
            if self._enough.wait(_AGAIN_S):
                time.sleep(_AGAIN_S)

    def _read_on(self) -> None:
        caller = _Caller(self._token)
        while not self._enough.wait(_READ_EVERY_S):
            recent = self.tally.accepted[-1:]
            paths = ["/api/v1/vlls?limit=20", *(f"/api/v1/orders/{each.order}" for each in recent)]
            for path in paths:
                self.tally.reads += 1
                try:
                    status, answer = caller.call("GET", path, "", {})
                except (OSError, http.client.HTTPException) as problem:
                    self.tally.failed.append((time.monotonic(), path, repr(problem)))
                    continue
                if status != 200:
                    self.tally.failed.append((time.monotonic(), path, f"{status} {answer[:200]!r}"))


class _Caller:
    """One kept connection to the virtual address."""

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
        kept = self._connection is not None
        try:
            return self._once(method, path, body, headers)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            self._drop()
            # A kept connection may be closed at any time; HTTP clients ask once more (RFC 9110, 9.2.2).
            if not kept:
                raise
            return self._once(method, path, body, headers)
        except (OSError, http.client.HTTPException):
            self._drop()
            raise

    def _once(self, method: str, path: str, body: str, headers: dict[str, str]) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(
                VIRTUAL_IP, timeout=_PATIENCE_S, context=self._context
            )
            self._connection.connect()
            self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection.request(method, path, body or None, {**self._headers, **headers})
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.will_close:
            self._drop()
        return answer.status, text

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
