"""Orders all the time, each noted with its moment: what a backup misses is known to the drill alone."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle

from drills.checks.customer import Answer, Customer, Json, Line

# In flight: as many as the web's threads.
CLIENTS = 4
# One after another; then the next pair's turn.
OF_A_PAIR = 12


@dataclass(frozen=True, slots=True)
class Noted:
    """An order that was answered with 202; moments by the machine's clock, in seconds."""

    vll: str
    order: str
    sent_at: float
    accepted_at: float


@dataclass
class Ordering:
    """``refused``: answers other than 202, with their moments. ``unanswered``: of unknown outcome."""

    accepted: list[Noted] = field(default_factory=list)
    refused: list[tuple[float, Answer]] = field(default_factory=list)
    unanswered: int = 0

    def before(self, moment: float) -> list[Noted]:
        """Those accepted before then."""
        return [each for each in self.accepted if each.accepted_at < moment]

    def refused_before(self, moment: float) -> list[Answer]:
        return [answer for answered_at, answer in self.refused if answered_at < moment]

    def told_between(self, since: float, until: float) -> str:
        """How many were accepted, and how slowly at worst."""
        meanwhile = [each for each in self.accepted if since < each.accepted_at < until]
        slowest = max((each.accepted_at - each.sent_at for each in meanwhile), default=0)
        return f"meanwhile {len(meanwhile)} orders were accepted, the slowest in {slowest * 1000:.0f} ms"


@contextmanager
def ordering(customer: Customer, lines: list[Line], *, per_s: float) -> Iterator[Ordering]:
    """Order on these pairs of ports, of every kind, until the end; what is late is not made up for."""
    noted, stop, lock = Ordering(), threading.Event(), threading.Lock()
    bodies = _bodies(lines)

    def client() -> None:
        due = time.monotonic()
        while not stop.is_set():
            with lock:
                body = next(bodies)
            _order(customer, body, noted)
            due = max(due + CLIENTS / per_s, time.monotonic())
            stop.wait(due - time.monotonic())

    clients = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for each in clients:
        each.start()
    try:
        yield noted
    finally:
        stop.set()
        for each in clients:
            each.join()


def _bodies(lines: list[Line]) -> Iterator[Json]:
    for line in cycle(lines):
        yield from line.orders(OF_A_PAIR)


def _order(customer: Customer, body: Json, noted: Ordering) -> None:
    sent_at = time.time()
    answer = customer.post(body)
    if answer.status == 202:
        noted.accepted.append(Noted(answer.vll, answer.order, sent_at, time.time()))
    elif answer.status is None:
        noted.unanswered += 1
    else:
        noted.refused.append((time.time(), answer))
