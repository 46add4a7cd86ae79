"""A customer who uses the API and records every response."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx

Json = dict[str, Any]
# Twice the number of requests that the web processes handle at the same time (2 workers with 4 threads each).
CONCURRENT = 16
TRANSPORTS = ("vxlan4", "geneve6", "auto", "vxlan6", "geneve4", "l2xc")


@dataclass(frozen=True)
class Response:
    """A response. `status` is None if the connection broke, so that nobody knows whether the portal accepted
    the order.
    """

    description: str
    status: int | None
    body: Json
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def order(self) -> str:
        identity: str = self.body["order"]["id"]
        return identity

    @property
    def vll(self) -> str:
        identity: str = self.body["vll"]["id"]
        return identity


@dataclass(frozen=True)
class Line:
    """A pair of ports, one on each router, that only one test uses. Each order gets the next VLAN."""

    interface: str
    rhino: int
    hippo: int
    _vlans: Any = field(default_factory=lambda: count(1))

    def order(self, *, vlan: int | str | None = None, **changes: Any) -> Json:
        """Return the body of an order for a line between the two ports."""
        end = {"tagging": "dot1q", "outer_vlan": vlan or next(self._vlans), "inner_vlan": None}
        return {
            "a_end": end | {"port": self.rhino},
            "z_end": end | {"port": self.hippo},
            "svc_mtu": 1500,
            "cir_bps": 1_000_000,
            "transport": "auto",
        } | changes

    def local_order(self) -> Json:
        """Return the body of an order for a line between two VLANs of the pair's port on rhino."""
        body = self.order(transport="l2xc")
        return body | {"z_end": body["a_end"] | {"outer_vlan": next(self._vlans)}}

    def orders(self, number: int) -> list[Json]:
        """Return bodies of orders of all kinds.

        They differ in encapsulation, address family, number of routers (one or two) and number of tags (one
        or two).
        """
        bodies = []
        for n in range(number):
            transport = TRANSPORTS[n % len(TRANSPORTS)]
            body = self.local_order() if transport == "l2xc" else self.order(transport=transport)
            if n % 4 == 3:
                tags = {"tagging": ("qinq", "dot1ad")[n % 8 // 4], "inner_vlan": 7}
                body["a_end"], body["z_end"] = body["a_end"] | tags, body["z_end"] | tags
            bodies.append(body)
        return bodies


class Customer:
    def __init__(self, url: str, token: str) -> None:
        limits = httpx.Limits(max_connections=64, max_keepalive_connections=0)
        self._http = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=60,
            trust_env=False,
            limits=limits,
        )
        self._numbers = count(1)

    def post(self, body: Json, *, key: str | None = None) -> Response:
        """Send an order once. The description of the order is unique. It is the Idempotency-Key, or a number
        if the order has no key.
        """
        description = key or f"order {next(self._numbers)}"
        headers = {"Idempotency-Key": key} if key else {}
        try:
            response = self._http.post(
                "/api/v1/vlls", json=body | {"description": description}, headers=headers
            )
        except httpx.TransportError:
            return Response(description, None, {})
        document = response.json() if "json" in response.headers.get("Content-Type", "") else {}
        return Response(description, response.status_code, document, dict(response.headers))

    def validate(self, body: Json) -> Json:
        """Return the portal's response to a check of an order: whether the order is possible now, and the
        reasons if not.
        """
        found: Json = self._http.post("/api/v1/vlls/validate", json=body).raise_for_status().json()
        return found

    def post_all(self, bodies: list[Json], *, at_once: int = CONCURRENT) -> list[Response]:
        with ThreadPoolExecutor(at_once) as clients:
            return list(clients.map(self.post, bodies))

    def remove(self, vll: str) -> str:
        """Order the removal of a line without cooling-off. Return the id of the order."""
        response = self._http.delete(f"/api/v1/vlls/{vll}?cooling_off=0")
        assert response.is_success, f"{response.status_code}: {response.text}"
        identity: str = response.json()["order"]["id"]
        return identity

    def import_table(self, kind: str, table: str) -> str:
        """Import a table without a dry run. Return the id of the import."""
        response = self._http.post("/api/v1/imports", json={"kind": kind, "csv": table}).raise_for_status()
        identity: str = response.json()["id"]
        return identity

    def get(self, path: str) -> Json:
        body: Json = self._http.get(path).raise_for_status().json()
        return body

    def add_webhook(self, url: str, types: list[str]) -> int:
        """Create a webhook and return its id."""
        response = self._http.post("/api/v1/webhooks", json={"url": url, "types": types}).raise_for_status()
        return int(response.json()["id"])

    def remove_webhook(self, webhook: int) -> None:
        self._http.delete(f"/api/v1/webhooks/{webhook}").raise_for_status()

    def raw(self, content: bytes) -> httpx.Response:
        """Send ``POST /api/v1/vlls`` with exactly these bytes as body."""
        return self._http.post("/api/v1/vlls", content=content, headers={"Content-Type": "application/json"})


def accepted(responses: list[Response]) -> list[Response]:
    return [response for response in responses if response.status == 202]
