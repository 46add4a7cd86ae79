"""Orders at a steady rate. Lines are added, and removed after a minute."""

import asyncio
import json
import random
import time
from collections import deque
from dataclasses import dataclass, field
from itertools import count

from drills.scale.web import request

_FIRST_VLAN, _LAST_VLAN = 3001, 4094
_KEPT_S = 60.0


@dataclass
class Orders:
    """The orders so far.

    ``took``: for each accepted order, its time (``time.monotonic``) and the duration of its request in
    milliseconds. ``accepted``: the ids of the orders.
    """

    port: int
    token: str
    routers: int
    took: list[tuple[float, float]] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    _made: deque[tuple[float, str]] = field(default_factory=deque)

    async def keep_ordering(self, per_s: float) -> None:
        """Order forever, ``per_s`` times per second. A slow response does not delay the next order."""
        due = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for number in count():
                due += 1 / per_s
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                old = self._made and time.monotonic() - self._made[0][0] > _KEPT_S
                tasks.create_task(self._remove() if old and number % 2 else self._add(number))

    async def _add(self, number: int) -> None:
        a = random.randrange(self.routers)
        vlan = _FIRST_VLAN + number % (_LAST_VLAN - _FIRST_VLAN)
        end = {"tagging": "dot1q", "outer_vlan": vlan}
        order = {
            "a_end": {**end, "port": 1 + a},
            "z_end": {**end, "port": 1 + (a + 1) % self.routers},
            "svc_mtu": 1500,
            "cir_bps": 1_000_000,
            "transport": "auto",
            "description": "an order of the simulation",
        }
        accepted = await self._order("POST", "/api/v1/vlls", order)
        if accepted is not None:
            self._made.append((time.monotonic(), accepted["vll"]["id"]))

    async def _remove(self) -> None:
        _, vll = self._made.popleft()
        await self._order("DELETE", f"/api/v1/vlls/{vll}?cooling_off=0", None)

    async def _order(self, method: str, path: str, body: object) -> dict[str, dict[str, str]] | None:
        began = time.monotonic()
        headers = {"Authorization": f"Bearer {self.token}"}
        status, response = await request(self.port, path, method=method, headers=headers, body=body)
        if status != 202:
            self.failed.append(f"{method} {status} {response[:300]!r}")
            return None
        self.took.append((began, (time.monotonic() - began) * 1000))
        accepted: dict[str, dict[str, str]] = json.loads(response)
        self.accepted.append(accepted["order"]["id"])
        return accepted
