"""A small client of the REST API: order, watch, remove."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

Json = dict[str, Any]
POLL_S = 0.25
SETTLED = {"completed", "failed", "rejected", "cancelled"}


class Refused(Exception):
    """The portal answered with a problem document (RFC 9457)."""

    def __init__(self, status: int, problem: Json) -> None:
        super().__init__(f"{status}: {problem}")
        self.status = status
        self.problem = problem


class NotReached(Exception):
    """An order ended otherwise, or did not get there in time; the text has its last state."""


@dataclass(frozen=True, slots=True)
class Accepted:
    order: str
    vll: str


class Client:
    """Acts as the owner of `token`. `alive` is called while waiting and raises when waiting is vain."""

    def __init__(self, url: str, token: str, alive: Callable[[], None] = lambda: None) -> None:
        # A proxy from the environment has no business on loopback.
        self._http = httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=30, trust_env=False
        )
        self._alive = alive

    def order(self, **wanted: Any) -> Accepted:
        """POST /api/v1/vlls with the members of `wanted`. Raises Refused."""
        body = self._call("POST", "/api/v1/vlls", json=wanted)
        return Accepted(order=body["order"]["id"], vll=body["vll"]["id"])

    def validate(self, **wanted: Any) -> Json:
        """Whether such an order would be taken, and what is against it."""
        return self._call("POST", "/api/v1/vlls/validate", json=wanted)

    def change(self, vll: str, **wanted: Any) -> str:
        """Order a change of the line, whatever it has become meanwhile; the order's id. Raises Refused."""
        identity: str = self._patch(vll, wanted)["order"]["id"]
        return identity

    def describe(self, vll: str, description: str) -> None:
        """A description alone holds at once."""
        self._patch(vll, {"description": description})

    def _patch(self, vll: str, wanted: Json) -> Json:
        return self._call("PATCH", f"/api/v1/vlls/{vll}", json=wanted, headers={"If-Match": "*"})

    def remove(self, vll: str) -> str:
        """Order the removal at once; the order's id."""
        body = self._call("DELETE", f"/api/v1/vlls/{vll}?cooling_off=0")
        identity: str = body["order"]["id"]
        return identity

    def suspend(self, vll: str) -> str:
        """Order both ends down; the order's id."""
        return self._act(vll, "suspend")

    def resume(self, vll: str) -> str:
        """Order a suspended line up again; the order's id."""
        return self._act(vll, "resume")

    def _act(self, vll: str, action: str) -> str:
        body = self._call("POST", f"/api/v1/vlls/{vll}/{action}")
        identity: str = body["order"]["id"]
        return identity

    def found_lines(self) -> list[Json]:
        """Those that somebody else made, up to a hundred; for the NOC."""
        results: list[Json] = self._call("GET", "/api/v1/found-lines?limit=100")["results"]
        return results

    def adopt_several(self, lines: list[Json], *, dry_run: bool = False) -> list[Json]:
        """Have all of these taken over, or none; what becomes of each. Raises Refused."""
        asked = {"lines": lines, "dry_run": dry_run}
        outcomes: list[Json] = self._call("POST", "/api/v1/found-lines/adopt", json=asked)["lines"]
        return outcomes

    def adopt(self, found_line: int, **wanted: Any) -> Accepted:
        """Have a found line taken over. Raises Refused."""
        body = self._call("POST", f"/api/v1/found-lines/{found_line}/adopt", json=wanted)
        return Accepted(order=body["order"]["id"], vll=body["vll"]["id"])

    def let_go(self, vll: str) -> str:
        """Have a line become somebody else's, as it is; the order's id."""
        return self._act(vll, "let-go")

    def lines(self) -> list[Json]:
        """The newest lines that this client may see, a page of them."""
        results: list[Json] = self._call("GET", "/api/v1/vlls")["results"]
        return results

    def vll(self, identity: str) -> Json:
        return self._call("GET", f"/api/v1/vlls/{identity}")

    def throughput(self, identity: str, *, seconds: int) -> Json:
        now = int(time.time())
        return self._call("GET", f"/api/v1/vlls/{identity}/throughput?from={now - seconds}&to={now}")

    def carries_traffic(self, identity: str) -> bool:
        """Both ends were counted with bits in both directions."""
        series = self.throughput(identity, seconds=120)
        return all(any(into and out for _, into, out in series[end]) for end in ("a_end", "z_end"))

    def tests(self, identity: str) -> list[Json]:
        """The line's tests with frames, newest first."""
        results: list[Json] = self._call("GET", f"/api/v1/vlls/{identity}/tests")["results"]
        return results

    def test(self, identity: str) -> Json:
        """Have a line in service tested now."""
        return self._call("POST", f"/api/v1/vlls/{identity}/tests", json={})

    def diagnosis(self, identity: str) -> Json:
        return self._call("GET", f"/api/v1/vlls/{identity}/diagnosis")

    def routers(self) -> list[Json]:
        """For the NOC."""
        results: list[Json] = self._call("GET", "/api/v1/routers")["results"]
        return results

    def router(self, name: str) -> int:
        """Its id; for the NOC."""
        [found] = [each for each in self.routers() if each["name"] == name]
        identity: int = found["id"]
        return identity

    def change_router(self, identity: int, **wanted: Any) -> None:
        """For the NOC."""
        self._call("PATCH", f"/api/v1/routers/{identity}", json=wanted, headers={"If-Match": "*"})

    def router_action(self, identity: int, action: str) -> None:
        """Such as ``maintenance-begin``; for the NOC."""
        self._call("POST", f"/api/v1/routers/{identity}/actions", json={"do": action})

    def latency(self, identity: str) -> list[Json]:
        """The minutes of the last hour in which packets came back: start, shortest, mean, longest, lost."""
        answer = self._call("GET", f"/api/v1/vlls/{identity}/latency?step=60")
        return [row for row in answer["round_trips"] if row[1] is not None]

    def policing(self, identity: str) -> Json:
        return self._call("GET", f"/api/v1/vlls/{identity}/policing")

    def take_calibration(self, router: int, calibration: Json | None) -> Json:
        """Have admission go by this, None: by the shipped table. Raises Refused."""
        return self._call("POST", f"/api/v1/routers/{router}/calibration", json={"calibration": calibration})

    def is_completed(self, order: str) -> bool:
        return bool(self._call("GET", f"/api/v1/orders/{order}")["state"] == "completed")

    def wait_completed(self, order: str, *, timeout_s: float) -> None:
        """Raises NotReached when the order ends in another state or not in time."""
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

    def _call(self, method: str, path: str, **more: Any) -> Json:
        answer = self._http.request(method, path, **more)
        body: Json = answer.json() if answer.content else {}
        if answer.is_error:
            raise Refused(answer.status_code, body)
        return body
