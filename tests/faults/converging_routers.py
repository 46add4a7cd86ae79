"""The moment for a fault to strike: while a worker is talking to a router's agent."""

from collections.abc import Collection
from uuid import UUID

from drills.checks.checker import Checker, wait

_CLAIMS = (
    "SELECT c.claim FROM vll_routerconvergence c JOIN inventory_router r ON r.id = c.router_id "
    "WHERE c.claim IS NOT NULL AND c.claimed_until > now() AND r.name = ANY(%s)"
)
# A claim lasts for some hundredths of a second.
LOOK_EVERY_S = 0.01
# That of a worker that died lasts for 45 s, and a sweep comes 5 s later.
BEGUN_WITHIN_S = 120


def claims(checker: Checker, *routers: str) -> set[UUID]:
    """Each of a worker that talks to one of them, or that died when it did."""
    return {claim for (claim,) in checker.sql(_CLAIMS, list(routers))}


def wait_until_converging(checker: Checker, *routers: str, besides: Collection[UUID] = ()) -> None:
    """Until one of them is. Fails if none ever is: then nothing would be tested.

    ``besides``: claims of workers that are dead.
    """
    seen = wait(
        lambda: bool(claims(checker, *routers).difference(besides)),
        timeout_s=BEGUN_WITHIN_S,
        look_every_s=LOOK_EVERY_S,
    )
    assert seen, f"no worker ever spoke to {' or '.join(routers)}"
