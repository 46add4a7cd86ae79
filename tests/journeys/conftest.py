"""The whole product as processes, for tests that use it from outside."""

from collections.abc import Iterator

import pytest

from devstack.isp import small_isp
from devstack.stack import Stack
from tests.stacks import simulated


@pytest.fixture(scope="package")
def live_stack() -> Iterator[Stack]:
    """The small ISP on stand-in VPPs, on services of its own; lines are tested, agents report every second.

    For this folder only, as every installation of the tests: one that is left running takes its share of the
    processors from all that come after.
    """
    with simulated(small_isp(), settings={"LONGLINE_LINE_TEST": "required"}) as running:
        yield running
