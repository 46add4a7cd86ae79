"""Continuous orders. The drill records each order with its time, because the portal cannot know which orders
a backup lacks.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle

from drills.checks.customer import Customer, Json, Line, Response

# The number of clients that order at the same time. It equals the number of threads of the web server.
CLIENTS = 4
# The number of consecutive orders on one pair of ports, before orders on the next pair follow.
OF_A_PAIR = 12


@dataclass(frozen=True, slots=True)
class Noted:
    """An order with a 202 response. Times are in seconds of the machine's clock."""

    vll: str
    order: str
    sent_at: float
    accepted_at: float


@dataclass
class Ordering:
    """The load so far.

    ``refused``: all responses other than 202, with their times. ``unanswered``: the number of orders with an
    unknown outcome.
    """

    accepted: list[Noted] = field(default_factory=list)
    refused: list[tuple[float, Response]] = field(default_factory=list)
    unanswered: int = 0

    def before(self, moment: float) -> list[Noted]:
        """Return the orders that were accepted before ``moment``."""
        return [each for each in self.accepted if each.accepted_at < moment]

    def refused_before(self, moment: float) -> list[Response]:
        return [response for at, response in self.refused if at < moment]

    def summary_between(self, since: float, until: float) -> str:
        """Return a sentence with the number of accepted orders and the time of the slowest response."""
        meanwhile = [each for each in self.accepted if since < each.accepted_at < until]
        slowest = max((each.accepted_at - each.sent_at for each in meanwhile), default=0)
        return f"meanwhile {len(meanwhile)} orders were accepted, the slowest in {slowest * 1000:.0f} ms"


@contextmanager
def ordering(customer: Customer, lines: list[Line], *, per_s: float) -> Iterator[Ordering]:
    """Order lines of all kinds on these pairs of ports as long as the context lasts.

    An order that is late does not make the following orders faster.
    """
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
    response = customer.post(body)
    if response.status == 202:
        noted.accepted.append(Noted(response.vll, response.order, sent_at, time.time()))
    elif response.status is None:
        noted.unanswered += 1
    else:
        noted.refused.append((time.time(), response))
