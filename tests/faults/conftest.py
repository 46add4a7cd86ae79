"""Fixtures of the fault tests. All share one product, which each test finds and leaves idle."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from itertools import count

import pytest

from devstack.folders import RUN
from devstack.isp import ALPINE_DAIRY, Port, small_isp
from devstack.stack import Stack
from drills.checks.checker import Checker
from drills.checks.customer import Customer, Line
from drills.checks.vpptestctl import VppTestctl
from tests.stacks import require_built, simulated

LINES = 16
REST_WITHIN_S = 90
_numbers = count(1)


@pytest.fixture(scope="package")
def product() -> Iterator[Stack]:
    """Yield a durable stack, because the tests crash its processes. Logs stay in .run/faults/log."""
    require_built("vpptestctl")
    ports = tuple(Port(f"memif{n}/0", ALPINE_DAIRY) for n in range(1, LINES + 1))
    logs = RUN / "faults" / "log"
    shutil.rmtree(logs, ignore_errors=True)
    # One customer sends as many requests here as many customers would.
    limits = {"LONGLINE_API_WRITES_PER_MIN": "100000", "LONGLINE_API_READS_PER_MIN": "100000"}
    with simulated(small_isp(extra_ports=ports), logs=logs, durable=True, settings=limits) as running:
        yield running


@pytest.fixture
def checker(product: Stack) -> Iterator[Checker]:
    vpps = {router: VppTestctl(sockets.api) for router, sockets in product.sockets.items()}
    with closing(Checker(product.portal.services.database_url, vpps)) as checker:
        yield checker


@pytest.fixture
def alice(product: Stack) -> Customer:
    return Customer(product.url, product.loaded["customer_token"])


@pytest.fixture(scope="module")
def line(product: Stack) -> Line:
    """Return a line on ports that no tests of another file use."""
    interface = f"memif{next(_numbers)}/0"
    return Line(interface, product.port("rhino", interface), product.port("hippo", interface))


@pytest.fixture(autouse=True)
def at_rest_afterwards(product: Stack, checker: Checker) -> Iterator[None]:
    product.family.raise_if_dead()
    assert not (unrest := checker.unrest()), f"an earlier test left unrest: {unrest[:3]}"
    yield
    product.family.raise_if_dead()
    checker.require_rest(within_s=REST_WITHIN_S)
