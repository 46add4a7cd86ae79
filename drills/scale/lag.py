"""From a customer's link that turns to what people and programs see: the event, the page, the API."""

import asyncio
import time
from dataclasses import dataclass, field

from drills.scale.web import ask

_LOOK_S = 0.25
# What takes longer counts as so much.
GIVE_UP_S = 60.0


@dataclass
class _Turn:
    up: bool
    at: float
    heard: bool = False
    shown: bool = False


@dataclass
class Lags:
    """Seconds from when a report was due that tells of a turn, by who saw it. ``never``: turns that a page
    did not show before the next one of the line."""

    seen: dict[str, list[float]] = field(default_factory=lambda: {"stream": [], "page": [], "api": []})
    never: int = 0
    _turns: dict[str, _Turn] = field(default_factory=dict)

    def turned(self, line: str, *, up: bool, at: float) -> None:
        """A line that a page follows."""
        self.never += line in self._turns and not self._turns[line].shown
        self._turns[line] = _Turn(up, at)

    def heard(self, line: str) -> None:
        turn = self._turns.get(line)
        if turn and not turn.heard:
            turn.heard = True
            self.seen["stream"].append(time.time() - turn.at)

    def shown(self, line: str, *, up: bool) -> None:
        turn = self._turns.get(line)
        if turn and not turn.shown and turn.up == up:
            turn.shown = True
            self.seen["page"].append(time.time() - turn.at)

    async def watch_api(self, line: str, *, port: int, token: str) -> None:
        """Ask for the line until it says what its last turn was."""
        turn = self._turns[line]
        wanted = b'"oper_status":"%s"' % (b"op-up" if turn.up else b"op-down")
        while time.time() - turn.at < GIVE_UP_S and self._turns[line] is turn:
            status, body = await ask(
                port, f"/api/v1/vlls/{line}", headers={"Authorization": f"Bearer {token}"}
            )
            if status == 200 and wanted in body.replace(b": ", b":"):
                break
            await asyncio.sleep(_LOOK_S)
        else:
            if self._turns[line] is not turn:
                return
        self.seen["api"].append(time.time() - turn.at)
