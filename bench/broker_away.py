"""How much slower orders are while Redis is flushed, stopped or frozen, compared with a healthy Redis.

Orders do not need Redis. But the API counts requests in Redis for its rate limits, so each request is
affected if Redis fails.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from threading import Event, Thread

import redis

from bench.database import migrated
from bench.figures import Figure, percentile
from bench.orders import OrderingIsp, ordering_isp
from bench.sizes import sized
from devstack.services import Services

IN_FLIGHT = 4
# The number of orders of each client in one turn. A turn takes about ten seconds. An effect that occurs once
# per outage then weighs as much as in production.
ORDERS = sized(150, smallest=3)
# The number of turns for each kind of failure. Before each turn with a failure, there is a turn with a
# healthy Redis.
ROUNDS = sized(2, smallest=1)


def measure() -> Iterator[Figure]:
    with migrated() as private, ordering_isp(writes_per_min=10**6, clients=IN_FLIGHT) as isp:
        vlans = count(1)
        _turn(isp, vlans)
        healthy: list[float] = []
        away: dict[str, list[float]] = {"flushed": [], "stopped": [], "frozen": []}
        for _ in range(ROUNDS):
            for how, taken in away.items():
                healthy += _turn(isp, vlans)
                with _redis_is(how, private):
                    taken += _turn(isp, vlans)
        usual = percentile(healthy, 95)
        yield Figure(
            "orders_p95_redis_there_ms", usual * 1_000, "ms", f"{IN_FLIGHT} in flight, {len(healthy)} orders"
        )
        for how, taken in away.items():
            note = f"p95 to p95 with Redis, turn by turn, {len(taken)} orders, all accepted; at most 2"
            yield Figure(f"orders_p95_redis_{how}_ratio", percentile(taken, 95) / usual, "x", note)


def _turn(isp: OrderingIsp, vlans: Iterator[int]) -> list[float]:
    """Return the seconds of each order of one turn. The first order after the change of Redis's state is
    included.
    """
    first = next(vlans) * ORDERS
    return isp.order_all(range(first, first + ORDERS))


@contextmanager
def _redis_is(how: str, private: Services) -> Iterator[None]:
    child = private.redis.child
    if how == "stopped":
        child.end()
        try:
            yield
        finally:
            child.restart()
    elif how == "frozen":
        child.freeze()
        try:
            yield
        finally:
            child.thaw()
    else:
        with _flushing(private.redis_url):
            yield


@contextmanager
def _flushing(url: str) -> Iterator[None]:
    done = Event()

    def flush() -> None:
        with redis.Redis.from_url(url) as broker:
            while not done.is_set():
                broker.flushall()
                time.sleep(0.05)

    thread = Thread(target=flush)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
