"""What holds for every test."""

import pytest
from django.core.cache import cache


@pytest.fixture(autouse=True)
def fresh_limits(pytestconfig: pytest.Config) -> None:
    """What one test used up of a rate limit is not missing in the next."""
    if pytestconfig.getoption("services") != "none":
        cache.clear()
