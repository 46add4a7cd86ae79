"""What is already known of a router's answers, to tell news from repetition."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from portal.inventory.models import Router
from portal.vll.models import VllEnd


def stored_answers(
    router: Router, vlls: Iterable[UUID]
) -> dict[tuple[UUID, str], tuple[str, int, Any, bool]]:
    """The last answer about each of its ends of these VLLs.

    By (VLL, side): status, revision, reason, policed.
    """
    ends = VllEnd.objects.filter(port__router=router, vll__in=list(vlls))
    return {
        (vll, side): (status, revision, reason, policed)
        for vll, side, status, revision, reason, policed in ends.values_list(
            "vll", "side", "status", "status_revision", "reason", "policed"
        )
    }
