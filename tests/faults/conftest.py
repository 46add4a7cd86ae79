"""One whole product for all faults. Every test finds it at rest and has to leave it at rest."""

import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from devstack import stack
from devstack.isp import ALPINE_DAIRY, Port, small_isp
from devstack.paths import BUILD, RUN
from devstack.process import Family
from devstack.stack import Stack
from devstack.vppsim import SimulatedDataplane
from tests.faults.checker import Checker
from tests.faults.customer import Customer, Line
from tests.faults.vpp_hand import Hand

LINES = 16
REST_WITHIN_S = 90
_numbers = count(1)


@pytest.fixture(scope="package")
def product() -> Iterator[Stack]:
    """Durable, because crashes are the point; agents report every second. Logs stay in .run/faults/log."""
    for name in ("longline-agent", "vppsim", "vpphand"):
        if not (BUILD / name).exists():
            pytest.fail(f"{BUILD / name} is missing: run `make agent` first")
    ports = tuple(Port(f"memif{n}/0", ALPINE_DAIRY) for n in range(1, LINES + 1))
    isp, family = small_isp(extra_ports=ports), Family()
    logs = RUN / "faults" / "log"
    shutil.rmtree(logs, ignore_errors=True)
    # Short, because a Unix socket's path holds 107 bytes.
    with tempfile.TemporaryDirectory(prefix="ll-faults-") as name:
        folder = Path(name)
        # The database's own account has to get through to its cluster.
        folder.chmod(0o711)
        dataplane = SimulatedDataplane(isp=isp, folder=folder / "vppsim", logs=logs, family=family)
        with stack.running(
            folder=folder,
            logs=logs,
            isp=isp,
            dataplane=dataplane,
            family=family,
            report_interval_s=1,
            # One customer does here what many would do.
            settings={
                "LONGLINE_API_WRITES_PER_MIN": "100000",
                "LONGLINE_API_READS_PER_MIN": "100000",
            },
        ) as running:
            stack.wait_for_reports(running)
            yield running


@pytest.fixture
def checker(product: Stack) -> Checker:
    hands = {router: Hand(sockets.api) for router, sockets in product.sockets.items()}
    return Checker(product.portal.services.database_url, hands)


@pytest.fixture
def alice(product: Stack) -> Customer:
    return Customer(product.url, product.loaded["customer_token"])


@pytest.fixture(scope="module")
def line(product: Stack) -> Line:
    """Ports that no other file's tests use."""
    interface = f"memif{next(_numbers)}/0"
    return Line(interface, product.port("rhino", interface), product.port("hippo", interface))


@pytest.fixture(autouse=True)
def at_rest_afterwards(product: Stack, checker: Checker) -> Iterator[None]:
    product.family.raise_if_dead()
    assert not (unrest := checker.unrest()), f"an earlier test left unrest: {unrest[:3]}"
    yield
    product.family.raise_if_dead()
    checker.require_rest(within_s=REST_WITHIN_S)
