"""Wait for the worst moment for a fault: while a worker talks to a router's agent."""

from collections.abc import Collection
from uuid import UUID

from drills.checks.checker import Checker, wait

_CLAIMS = (
    "SELECT c.claim FROM vll_routerconvergence c JOIN inventory_router r ON r.id = c.router_id "
    "WHERE c.claim IS NOT NULL AND c.claimed_until > now() AND r.name = ANY(%s)"
)
# A claim lasts some hundredths of a second.
POLL_S = 0.01
# A dead worker's claim lasts 45 s, and the next sweep comes at most 5 s later.
BEGUN_WITHIN_S = 120


def claims(checker: Checker, *routers: str) -> set[UUID]:
    """Return the claims of workers that talk to one of the routers, or that died while they did."""
    return {claim for (claim,) in checker.sql(_CLAIMS, list(routers))}


def wait_until_converging(checker: Checker, *routers: str, besides: Collection[UUID] = ()) -> None:
    """Wait until a worker talks to one of the routers; fail if none does, as nothing would be tested.

    ``besides``: claims of workers that are dead.
    """
    is_converging = wait(
        lambda: bool(claims(checker, *routers).difference(besides)),
        timeout_s=BEGUN_WITHIN_S,
        poll_every_s=POLL_S,
    )
    assert is_converging, f"no worker ever talked to {' or '.join(routers)}"
