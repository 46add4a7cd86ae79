"""A pytest plugin: a machine that stands still for LEAP seconds (1) whenever somebody looks at the clock.

`LEAP=1 pytest -p tests.leaping_clock tests/integration`: tests fail at once that fail now and then where the
machine is slow.
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
    """Below ``clock.now``, which many have as a default already."""
    leap, looks = timedelta(seconds=float(os.environ.get("LEAP", "1"))), count()

    class Leaping:
        @staticmethod
        def now(tz: tzinfo) -> datetime:
            return datetime.now(tz=tz) + next(looks) * leap

    with patch.object(clock, "datetime", Leaping):
        yield
