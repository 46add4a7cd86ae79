"""A careful client that sends the orders of the storm. It repeats each request with the same key until it
gets a response.
"""

import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from drills.chaos.plan import Plan, Step
from drills.chaos.timeline import Timeline

Json = dict[str, Any]
NOC = ("let-go", "adopt", "adopt-again")
LINE_KNOWN_WITHIN_S = 30
FOUND_WITHIN_S = 8
ANSWERED_WITHIN_S = 45
RETRY_AFTER_S = 0.5
TIMEOUT_S = 10
# Seconds for which a customer retries while another order of the line is open.
PATIENT_FOR_S = 6
# After a response with one of these statuses, the client repeats the request.
_UNDECIDED = {429, 500, 502, 503, 504}
_ACTIONS = {"suspend": "suspend", "resume": "resume", "take-back": "restore", "let-go": "let-go"}


@dataclass(frozen=True, slots=True)
class Promise:
    """A response with status 202: the request (a step), and the order and the line in the response."""

    step: Step
    order: str
    vll: str


class Unknown(Exception):
    """The line of a step was never ordered, or it cannot be found in the portal."""


class NoAnswer(Exception):
    """No response came, so it is unknown whether the portal executed the request."""


@dataclass
class Customers:
    """The customers of a storm. ``ports`` maps "router/interface" to the id of the port.

    The methods fill ``promises``, ``refusals``, ``unanswered`` and ``server_errors``.
    """

    plan: Plan
    url: str
    customer_token: str
    noc_token: str
    ports: dict[str, int]
    handmade_interface: Callable[[int], tuple[str, str]]
    timeline: Timeline
    promises: list[Promise] = field(default_factory=list)
    refusals: dict[str, int] = field(default_factory=dict)
    unanswered: list[Step] = field(default_factory=list)
    server_errors: list[str] = field(default_factory=list)
    _vlls: dict[int, str] = field(default_factory=dict)
    _orders: dict[int, str] = field(default_factory=dict)
    _finished: set[int] = field(default_factory=set)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        self._http = {
            who: httpx.Client(
                base_url=self.url,
                headers={"Authorization": f"Bearer {token}"},
                timeout=TIMEOUT_S,
                trust_env=False,
                # Do not keep connections open: a connection to a killed server looks alive.
                limits=httpx.Limits(max_connections=64, max_keepalive_connections=0),
            )
            for who, token in (("customer", self.customer_token), ("noc", self.noc_token))
        }

    def take(self, number: int, step: Step) -> None:
        """Send the request of one step, and record the response."""
        key = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self.plan.seed} {number} {self.customer_token}"))
        try:
            self._wait_for_turn(number, step)
            response = self._send_step(step, key)
        except Unknown as reason:
            self._refused("not there")
            self.timeline.note(f"order {number} {step}: not sent, {reason}")
        except NoAnswer as reason:
            self.unanswered.append(step)
            self.timeline.note(f"order {number} {step}: no response, {reason}")
        else:
            self._note(number, step, response)
        finally:
            with self._changed:
                self._finished.add(number)
                self._changed.notify_all()

    def _wait_for_turn(self, number: int, step: Step) -> None:
        """Wait until all earlier steps about the same router have their responses.

        If, for example, a router's release overtook its maintenance lock, the router would stay locked.
        """
        if step.router is None:
            return
        earlier = {at for at, each in enumerate(self.plan.steps[:number]) if each.router == step.router}
        with self._changed:
            # Wait twice as long as a step may take, because the earlier step may itself wait for another
            # step.
            if not self._changed.wait_for(lambda: earlier <= self._finished, 2 * ANSWERED_WITHIN_S):
                raise NoAnswer("an earlier step of this router has none yet")

    def _note(self, number: int, step: Step, response: httpx.Response) -> None:
        body: Json = response.json() if response.content else {}
        if response.status_code == 202:
            order = body["order"] if isinstance(body.get("order"), str) else body["order"]["id"]
            vll = body["vll"]["id"] if "vll" in body else self._vlls[step.line or 0]
            with self._changed:
                self.promises.append(Promise(step, order, vll))
                if step.line is not None:
                    self._vlls[step.line], self._orders[step.line] = vll, order
                self._changed.notify_all()
            self.timeline.note(f"order {number} {step}: accepted, order {order} line {vll}")
        elif response.is_success:
            self.timeline.note(f"order {number} {step}: done")
        else:
            codes = [each.get("code") for each in body.get("errors", [])]
            what = str(body.get("type", "")).rpartition("#")[2] or str(response.status_code)
            self._refused(what.rstrip("/"))
            self.timeline.note(f"order {number} {step}: {response.status_code} {what} {codes or ''}")

    def _refused(self, why: str) -> None:
        with self._changed:
            self.refusals[why] = self.refusals.get(why, 0) + 1

    def _send_step(self, step: Step, key: str) -> httpx.Response:
        if step.router is not None:
            return self._send("noc", "POST", f"/api/v1/routers/{self._router(step.router)}/actions", key,
                              {"do": step.do} | _more(step.do))  # fmt: skip
        if step.do == "create":
            return self._send("customer", "POST", "/api/v1/vlls", key, self._order_of(step))
        if step.do == "adopt":
            return self._adopt(key, *self.handmade_interface(step.requested["handmade"]))
        vll = self._vll(step)
        where = f"/api/v1/vlls/{vll}"
        if step.do == "change":
            return self._send("customer", "PATCH", where, key, step.requested, {"If-Match": "*"})
        if step.do == "remove":
            return self._send("customer", "DELETE", f"{where}?cooling_off=0", key)
        if step.do == "remove-later":
            return self._send("customer", "DELETE", f"{where}?cooling_off=3600", key)
        if step.do == "cancel":
            with self._changed:
                order = self._orders[step.line or 0]
            return self._send("customer", "POST", f"/api/v1/orders/{order}/cancel", key)
        if step.do == "test":
            return self._send("customer", "POST", f"{where}/activation-tests", key, {})
        if step.do == "adopt-again":
            end = self._get("noc", where)["a_end"]
            tags = (end["outer_vlan"], end["inner_vlan"])
            return self._adopt(key, end["router"], None, port=end["port_name"], tags=tags)
        who = "noc" if step.do in NOC else "customer"
        return self._send(who, "POST", f"{where}/{_ACTIONS[step.do]}", key)

    def _order_of(self, step: Step) -> Json:
        ends = {}
        for side in ("a", "z"):
            requested = dict(step.requested[side])
            requested["port"] = self.ports[f"{requested.pop('router')}/{requested['port']}"]
            ends[f"{side}_end"] = requested
        rest = {name: value for name, value in step.requested.items() if name not in ("a", "z")}
        return {"description": f"line {step.line}", **ends, **rest}

    def _adopt(
        self,
        key: str,
        router: str,
        interface: str | None,
        *,
        port: str = "",
        tags: tuple[int | None, int | None] = (None, None),
    ) -> httpx.Response:
        """Adopt the found line that has an end on this interface, or an end with these VLANs on this port."""

        def matches(end: Json | None) -> bool:
            if end is None or end["router"] != router:
                return False
            if interface is not None:
                return bool(end["interface"] == interface)
            return port.endswith(end["port"]) and (end["outer_vlan"], end["inner_vlan"]) == tags

        deadline = time.monotonic() + FOUND_WITHIN_S
        while True:
            found = self._get("noc", "/api/v1/found-lines?limit=100")["results"]
            lines = [line for line in found if matches(line["a_end"]) or matches(line["z_end"])]
            if lines:
                wanted = {"description": "Taken over", "svc_mtu": 1500, "cir_bps": 1_000_000}
                where = f"/api/v1/found-lines/{lines[0]['id']}/adopt"
                return self._send("noc", "POST", where, key, wanted)
            if time.monotonic() > deadline:
                raise Unknown("no such line was found")
            time.sleep(RETRY_AFTER_S)

    def _vll(self, step: Step) -> str:
        with self._changed:
            line = step.line
            if line is None or not self._changed.wait_for(lambda: line in self._vlls, LINE_KNOWN_WITHIN_S):
                raise Unknown("its line was not ordered")
            return self._vlls[line]

    def _router(self, name: str) -> int:
        found = [each for each in self._get("noc", "/api/v1/routers")["results"] if each["name"] == name]
        return int(found[0]["id"])

    def _get(self, who: str, path: str) -> Json:
        body: Json = self._until_decided(lambda: self._http[who].get(path)).json()
        return body

    def _send(
        self,
        who: str,
        method: str,
        path: str,
        key: str,
        body: Json | None = None,
        headers: dict[str, str] | None = None,
    ) -> httpx.Response:
        more = {"Idempotency-Key": key, **(headers or {})}
        return self._until_decided(lambda: self._http[who].request(method, path, json=body, headers=more))

    def _until_decided(self, send_request: Callable[[], httpx.Response]) -> httpx.Response:
        """Repeat the request until the response says whether it was executed. Raises NoAnswer."""
        began, last = time.monotonic(), ""
        deadline = began + ANSWERED_WITHIN_S
        while time.monotonic() < deadline:
            try:
                response = send_request()
            except httpx.TransportError as error:
                last = type(error).__name__
            else:
                if response.status_code not in _UNDECIDED and not _passes(response, time.monotonic() - began):
                    return response
                last = str(response.status_code)
                if response.status_code == 500:
                    self.server_errors.append(f"{response.request.method} {response.request.url.path}")
            time.sleep(RETRY_AFTER_S)
        raise NoAnswer(last)


def _passes(response: httpx.Response, waited_s: float) -> bool:
    """Return whether the portal refused the request only for a temporary reason.

    An open order of the line counts as temporary for PATIENT_FOR_S seconds.
    """
    if response.status_code != 409:
        return False
    return "in-flight" in response.text or ("order-is-open" in response.text and waited_s < PATIENT_FOR_S)


def _more(do: str) -> Json:
    if do != "freeze":
        return {}
    until = datetime.now(UTC) + timedelta(hours=1)
    return {"reason": "a storm", "until": until.isoformat()}
