"""The answers of routers about ends, in terms of the domain, and the stored answers."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from portal.inventory.models import Router
from portal.vll.models import VllEnd, VllTombstone


@dataclass(frozen=True, slots=True)
class EndAnswer:
    """An agent's answer about one VLL end at one revision (docs/reference/agent-api.md).

    ``permanent``: a retry cannot help. The caller decides that from VPP's return codes. ``look``: the number
    of the agent's observation of VPP on which the answer is based; None: not reported.
    """

    vll: UUID
    side: str
    revision: int
    status: str
    reason: dict[str, Any] | None
    permanent: bool
    policed: bool = False
    look: int | None = None


def stored_answers(
    router: Router, vlls: Iterable[UUID]
) -> dict[tuple[UUID, str], tuple[str, int, Any, bool]]:
    """Return the router's last answers about the ends of these VLLs, including ends that have left the
    router.

    Keys: (VLL id, side). Values: (status, revision, reason, policed).
    """
    wanted = list(vlls)
    ends = VllEnd.objects.filter(port__router=router, vll__in=wanted)
    left = VllTombstone.objects.filter(router=router, vll__in=wanted)
    return {
        (vll, side): (status, revision, reason, False)
        for vll, side, status, revision, reason in left.values_list(
            "vll", "side", "status", "revision", "reason"
        )
    } | {
        (vll, side): (status, revision, reason, policed)
        for vll, side, status, revision, reason, policed in ends.values_list(
            "vll", "side", "status", "status_revision", "reason", "policed"
        )
    }
