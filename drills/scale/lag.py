"""The delay from a change of a customer port's link until observers see the change: as an event, on a page,
and in the API.
"""

import asyncio
import time
from dataclasses import dataclass, field

from drills.scale.web import request

_POLL_S = 0.25
# Seconds. A longer delay counts as this value.
GIVE_UP_S = 60.0


@dataclass
class _Turn:
    up: bool
    at: float
    notified: bool = False
    shown: bool = False


@dataclass
class Lags:
    """For each observer (stream, page, API), the delays in seconds.

    A delay begins at the due time of the report with the changed link. ``never`` counts changes that a page
    did not show before the next change of the same line.
    """

    observed: dict[str, list[float]] = field(default_factory=lambda: {"stream": [], "page": [], "api": []})
    never: int = 0
    _turns: dict[str, _Turn] = field(default_factory=dict)

    def turned(self, line: str, *, up: bool, at: float) -> None:
        """Record a change of a line that a page shows."""
        self.never += line in self._turns and not self._turns[line].shown
        self._turns[line] = _Turn(up, at)

    def notified(self, line: str) -> None:
        turn = self._turns.get(line)
        if turn and not turn.notified:
            turn.notified = True
            self.observed["stream"].append(time.time() - turn.at)

    def shown(self, line: str, *, up: bool) -> None:
        turn = self._turns.get(line)
        if turn and not turn.shown and turn.up == up:
            turn.shown = True
            self.observed["page"].append(time.time() - turn.at)

    async def watch_api(self, line: str, *, port: int, token: str) -> None:
        """Poll the line until the API shows its latest change. Stop if the line changes again."""
        turn = self._turns[line]
        wanted = b'"oper_status":"%s"' % (b"op-up" if turn.up else b"op-down")
        while time.time() - turn.at < GIVE_UP_S and self._turns[line] is turn:
            status, body = await request(
                port, f"/api/v1/vlls/{line}", headers={"Authorization": f"Bearer {token}"}
            )
            if status == 200 and wanted in body.replace(b": ", b":"):
                break
            await asyncio.sleep(_POLL_S)
        else:
            if self._turns[line] is not turn:
                return
        self.observed["api"].append(time.time() - turn.at)
