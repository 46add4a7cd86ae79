"""What is already known of a router's answers, to tell news from repetition."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from portal.inventory.models import Router
from portal.vll.models import VllEnd, VllTombstone


def stored_answers(
    router: Router, vlls: Iterable[UUID]
) -> dict[tuple[UUID, str], tuple[str, int, Any, bool]]:
    """The last answer about each of its ends of these VLLs, and about those that left it.

    By (VLL, side): status, revision, reason, policed.
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
