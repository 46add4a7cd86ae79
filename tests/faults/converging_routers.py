"""The moment for a fault to strike: while a worker is talking to a router's agent."""

from drills.checks.checker import Checker, wait

_CLAIMED = (
    "SELECT FROM vll_routerconvergence c JOIN inventory_router r ON r.id = c.router_id "
    "WHERE c.claim IS NOT NULL AND c.claimed_until > now() AND r.name = ANY(%s)"
)
# A claim lasts for some hundredths of a second.
LOOK_EVERY_S = 0.01
BEGUN_WITHIN_S = 60


def is_converging(checker: Checker, *routers: str) -> bool:
    return bool(checker.sql(_CLAIMED, list(routers)))


def wait_until_converging(checker: Checker, *routers: str) -> None:
    """Until one of them is. Fails if none ever is: then nothing would be tested."""
    seen = wait(lambda: is_converging(checker, *routers), timeout_s=BEGUN_WITHIN_S, look_every_s=LOOK_EVERY_S)
    assert seen, f"no worker ever spoke to {' or '.join(routers)}"
