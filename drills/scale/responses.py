"""The responses of the simulated agents (docs/reference/agent-api.md).

All objects of an intent exist immediately, and all test frames arrive.
"""

import asyncio
import hashlib
import json
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

from devstack.large_network import End, ReportingAgent

_FAR = {"a": "z", "z": "a"}
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Responses:
    """The responses of all agents. The agents share one state, so that frames from one agent arrive at
    another agent.
    """

    def __init__(self) -> None:
        self.intents = 0
        self._intents: dict[str, dict[str, Any]] = {}
        self._arrived: dict[str, Counter[str]] = defaultdict(Counter)

    def serving(self, agent: ReportingAgent) -> Handler:
        """Return a function that handles connections to this agent."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while True:
                    head = (await reader.readuntil(b"\r\n\r\n")).lower()
                    length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
                    body = await reader.readexactly(int(length or b"0"))
                    status, document = self._respond(agent, head.split(b" ", 2)[1].decode(), body)
                    content = json.dumps(document).encode()
                    writer.write(
                        b"HTTP/1.1 %d OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                        % (status, len(content), content)
                    )
            except (asyncio.IncompleteReadError, OSError):
                pass
            finally:
                writer.close()

        return serve

    def _respond(self, agent: ReportingAgent, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        request = json.loads(body) if body else {}
        match path:
            case "/v1/intent":
                return 200, self._take(agent, request, body)
            case "/v1/state":
                return 200, {"schema": 1, "router": agent.name, "held": self._intents.get(agent.name)}
            case "/v1/test-frames":
                return 200, self._frames(agent, request)
            case "/v1/round-trips":
                times = {"sent": 5, "received": 5, "min_us": 412, "avg_us": 520, "max_us": 903}
                return 200, self._about(agent, request) | times
            case _:
                return 404, {"type": "about:blank", "status": 404, "title": path}

    def _take(self, agent: ReportingAgent, intent: dict[str, Any], body: bytes) -> dict[str, Any]:
        self.intents += 1
        self._intents[agent.name] = {
            "generation": intent["generation"],
            "sha256": hashlib.sha256(body).hexdigest(),
        }
        agent.generation = intent["generation"]
        present = intent["present"]
        agent.carries(
            [
                End(end["vll"], end["end"], end["revision"], bool(end.get("bandwidth")))
                for end in present
                if end["access"] is not None
            ]
        )
        statuses = [(end, "testing" if end.get("testing") else "verified") for end in present]
        statuses += [(end, "removed") for end in intent["removed"]]
        return {
            "schema": 1,
            "router": agent.name,
            "generation": intent["generation"],
            "look": time.time_ns() // 1000,
            "applied": True,
            "ends": [
                {
                    "vll": end["vll"],
                    "end": end["end"],
                    "revision": end["revision"],
                    "status": status,
                    "policed": bool(end.get("bandwidth")),
                    "reason": None,
                }
                for end, status in statuses
            ],
            "quarantined": [],
        }

    def _frames(self, agent: ReportingAgent, request: dict[str, Any]) -> dict[str, Any]:
        arrived, count = self._arrived[request["vll"]], request["count"]
        arrived[_FAR[request["end"]]] += count
        counters = {
            "at_ms": int(time.time() * 1000),
            "rx_packets": arrived[request["end"]],
            "tx_packets": arrived[_FAR[request["end"]]],
            "fragmented": 0,
            "reassembled": 0,
        }
        versions = {"vpp_version": "25.10", "agent_version": "simulation"}
        return self._about(agent, request) | {"sent": count, "counters": counters} | versions

    def _about(self, agent: ReportingAgent, request: dict[str, Any]) -> dict[str, Any]:
        return {
            "schema": 1,
            "router": agent.name,
            "vll": request["vll"],
            "end": request["end"],
            "revision": request["revision"],
        }
