"""Programs that read, one request after another: complete exports, lists, searches and graphs."""

import random
import time
from dataclasses import dataclass, field
from urllib.parse import quote

from drills.scale.web import request


@dataclass
class Readers:
    """The readers.

    ``took`` and ``sizes`` are keyed by the name of the request. ``took``: the durations of all responses in
    milliseconds. ``sizes``: the bytes of the last response.
    """

    port: int
    token: str
    lines: list[str]
    took: dict[str, list[float]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    async def keep_reading(self) -> None:
        while True:
            await self._get("export of lines", "/api/v1/vlls.csv")
            for _ in range(10):
                await self._few()
            now = time.strftime("%Y-%m", time.gmtime())
            await self._get(
                "export of a month, a router's", f"/api/v1/months.csv?month={now}&router=router-7"
            )
            for _ in range(10):
                await self._few()

    async def _few(self) -> None:
        line = random.choice(self.lines)
        day = int(time.time()) - 86400
        await self._get("list of lines", "/api/v1/vlls")
        await self._get("list of orders", "/api/v1/orders")
        await self._get("list of a router's lines", "/api/v1/vlls?router=router-7")
        await self._get("search", f"/api/v1/vlls?q={quote('line 4711')}")
        await self._get("graph of a day", f"/api/v1/vlls/{line}/throughput?from={day}")
        await self._get("graph of an hour", f"/api/v1/vlls/{line}/throughput")
        await self._get("round trips of an hour", f"/api/v1/vlls/{line}/latency")
        await self._get("availability", f"/api/v1/vlls/{line}/availability")

    async def _get(self, name: str, path: str) -> None:
        began = time.monotonic()
        status, body = await request(self.port, path, headers={"Authorization": f"Bearer {self.token}"})
        if status != 200:
            self.failed.append(f"{path} {status} {body[:300]!r}")
            return
        self.took.setdefault(name, []).append((time.monotonic() - began) * 1000)
        self.sizes[name] = len(body)
