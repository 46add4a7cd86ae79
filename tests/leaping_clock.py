"""A pytest plugin: the machine stops for LEAP seconds (default 1) each time the code reads the clock.

`LEAP=1 pytest -p tests.leaping_clock tests/integration`: tests that fail occasionally on a slow machine fail
immediately.
"""

import os
from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from itertools import count
from unittest.mock import patch

import pytest

from portal.core import clock


@pytest.fixture(autouse=True)
def leaping_clock() -> Iterator[None]:
    """Replace the clock below ``clock.now``, because many functions have ``clock.now`` as a default."""
    leap, readings = timedelta(seconds=float(os.environ.get("LEAP", "1"))), count()

    class Leaping:
        @staticmethod
        def now(tz: tzinfo) -> datetime:
            return datetime.now(tz=tz) + next(readings) * leap

    with patch.object(clock, "datetime", Leaping):
        yield
