"""A small client of the REST API, to order lines, watch them and remove them."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

Json = dict[str, Any]
POLL_S = 0.25
SETTLED = {"completed", "failed", "rejected", "cancelled"}


class Refused(Exception):
    """The portal has refused a request. The exception has the problem document (RFC 9457)."""

    def __init__(self, status: int, problem: Json) -> None:
        super().__init__(f"{status}: {problem}")
        self.status = status
        self.problem = problem


class NotReached(Exception):
    """An order has ended in an unexpected state, or has not ended in time. The text has its last state."""


@dataclass(frozen=True, slots=True)
class Accepted:
    order: str
    vll: str


class Client:
    """A client with the rights of `token`.

    While the client waits, it calls `alive` repeatedly. `alive` raises an exception if waiting is pointless.
    """

    def __init__(self, url: str, token: str, alive: Callable[[], None] = lambda: None) -> None:
        # Requests to this machine must not go through a proxy from the environment.
        self._http = httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=30, trust_env=False
        )
        self._alive = alive

    def order(self, **members: Any) -> Accepted:
        """Send ``POST /api/v1/vlls`` with these members. Raises Refused."""
        return _accepted(self._call("POST", "/api/v1/vlls", json=members))

    def validate(self, **members: Any) -> Json:
        """Return the portal's check of an order: whether it is possible now, and the reasons if not."""
        return self._call("POST", "/api/v1/vlls/validate", json=members)

    def change(self, vll: str, **members: Any) -> str:
        """Order a change of any version of the line. Return the order's id. Raises Refused."""
        return _order_id(self._patch(vll, members))

    def describe(self, vll: str, description: str) -> None:
        """Change the line's description. This needs no order."""
        self._patch(vll, {"description": description})

    def _patch(self, vll: str, members: Json) -> Json:
        return self._call("PATCH", f"/api/v1/vlls/{vll}", json=members, headers={"If-Match": "*"})

    def remove(self, vll: str) -> str:
        """Order the removal of the line without cooling-off. Return the order's id."""
        return _order_id(self._call("DELETE", f"/api/v1/vlls/{vll}?cooling_off=0"))

    def suspend(self, vll: str) -> str:
        """Order that the line is suspended. Return the order's id."""
        return self._act(vll, "suspend")

    def resume(self, vll: str) -> str:
        """Order that a suspended line is resumed. Return the order's id."""
        return self._act(vll, "resume")

    def _act(self, vll: str, action: str) -> str:
        return _order_id(self._call("POST", f"/api/v1/vlls/{vll}/{action}"))

    def found_lines(self) -> list[Json]:
        """Return at most a hundred lines that the portal does not manage. Needs the rights of the NOC."""
        return self._results("/api/v1/found-lines?limit=100")

    def adopt_several(self, lines: list[Json], *, dry_run: bool = False) -> list[Json]:
        """Adopt all of these lines or none. Return the outcome for each line. Raises Refused."""
        body = {"lines": lines, "dry_run": dry_run}
        return list(self._call("POST", "/api/v1/found-lines/adopt", json=body)["lines"])

    def adopt(self, found_line: int, **members: Any) -> Accepted:
        """Adopt a found line. Raises Refused."""
        return _accepted(self._call("POST", f"/api/v1/found-lines/{found_line}/adopt", json=members))

    def let_go(self, vll: str) -> str:
        """Order that the portal releases a line. The line stays on the routers. Return the order's id."""
        return self._act(vll, "let-go")

    def lines(self) -> list[Json]:
        """Return the first page of the lines that this client may see, newest first."""
        return self._results("/api/v1/vlls")

    def vll(self, identity: str) -> Json:
        return self._call("GET", f"/api/v1/vlls/{identity}")

    def throughput(self, identity: str, *, seconds: int) -> Json:
        now = int(time.time())
        return self._call("GET", f"/api/v1/vlls/{identity}/throughput?from={now - seconds}&to={now}")

    def carries_traffic(self, identity: str) -> bool:
        """Return whether both ends have counted bits in both directions."""
        series = self.throughput(identity, seconds=120)
        return all(any(into and out for _, into, out in series[end]) for end in ("a_end", "z_end"))

    def tests(self, identity: str) -> list[Json]:
        """Return the line's activation tests, newest first."""
        return self._results(f"/api/v1/vlls/{identity}/activation-tests")

    def test(self, identity: str) -> Json:
        """Request an activation test of a line in service."""
        return self._call("POST", f"/api/v1/vlls/{identity}/activation-tests", json={})

    def diagnosis(self, identity: str) -> Json:
        return self._call("GET", f"/api/v1/vlls/{identity}/diagnosis")

    def routers(self) -> list[Json]:
        """Return all routers. Needs the rights of the NOC."""
        return self._results("/api/v1/routers")

    def router(self, name: str) -> int:
        """Return the id of the router with this name. Needs the rights of the NOC."""
        [found] = [each for each in self.routers() if each["name"] == name]
        return int(found["id"])

    def change_router(self, identity: int, **members: Any) -> None:
        """Change members of a router. Needs the rights of the NOC."""
        self._call("PATCH", f"/api/v1/routers/{identity}", json=members, headers={"If-Match": "*"})

    def router_action(self, identity: int, action: str) -> None:
        """Execute an action on a router, for example ``maintenance-begin``. Needs the rights of the NOC."""
        self._call("POST", f"/api/v1/routers/{identity}/actions", json={"do": action})

    def latency(self, identity: str) -> list[Json]:
        """Return the minutes of the last hour in which replies arrived.

        Each has its start, the shortest, mean and longest round trip, and the number of lost packets.
        """
        response = self._call("GET", f"/api/v1/vlls/{identity}/latency?step=60")
        return [row for row in response["round_trips"] if row[1] is not None]

    def policing(self, identity: str) -> Json:
        return self._call("GET", f"/api/v1/vlls/{identity}/policing")

    def take_calibration(self, router: int, calibration: Json | None) -> Json:
        """Set the router's calibration for order checks. None selects the shipped table. Raises Refused."""
        return self._call("POST", f"/api/v1/routers/{router}/calibration", json={"calibration": calibration})

    def is_completed(self, order: str) -> bool:
        return bool(self._call("GET", f"/api/v1/orders/{order}")["state"] == "completed")

    def wait_completed(self, order: str, *, timeout_s: float) -> None:
        """Wait until an order has completed. Raises NotReached if it ends in another state or too late."""
        body: Json = {}

        def completed() -> bool:
            nonlocal body
            body = self._call("GET", f"/api/v1/orders/{order}")
            if body["state"] in SETTLED - {"completed"}:
                raise NotReached(f"order {order}: {body}")
            return bool(body["state"] == "completed")

        if not self.wait(completed, timeout_s=timeout_s):
            raise NotReached(f"order {order} after {timeout_s:g} s: {body}")

    def wait(self, condition: Callable[[], bool], *, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while not condition():
            self._alive()
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True

    def _results(self, path: str) -> list[Json]:
        return list(self._call("GET", path)["results"])

    def _call(self, method: str, path: str, **more: Any) -> Json:
        response = self._http.request(method, path, **more)
        body: Json = response.json() if response.content else {}
        if response.is_error:
            raise Refused(response.status_code, body)
        return body


def _order_id(body: Json) -> str:
    return str(body["order"]["id"])


def _accepted(body: Json) -> Accepted:
    return Accepted(order=body["order"]["id"], vll=body["vll"]["id"])
