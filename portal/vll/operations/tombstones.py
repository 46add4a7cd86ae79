"""Ends that moved away: what their old routers answer, and what may go back when they are gone."""

from collections.abc import Iterable
from datetime import datetime

from portal.inventory.models import Router
from portal.vll.models import Vll, VllEnd, VllTombstone
from portal.vll.operations.answers import EndAnswer
from portal.vll.operations.leasing import leases_release


def tombstones_settle(vll: Vll, router: Router, answers: Iterable[EndAnswer], *, now: datetime) -> None:
    """Take in what ``router`` says of the ends that left it; the caller has locked the VLL.

    What the old place needed goes back when the last router that one change moved an end away from has
    confirmed that nothing of it is left.
    """
    by_side = {answer.side: answer for answer in answers}
    for tombstone in VllTombstone.objects.filter(vll=vll, router=router).order_by("pk"):
        answer = by_side.get(tombstone.side)
        if answer is None or answer.revision != tombstone.revision:
            continue
        if answer.status != VllEnd.Status.REMOVED:
            VllTombstone.objects.filter(pk=tombstone.pk).update(
                status=answer.status, status_at=now, reason=answer.reason
            )
            continue
        tombstone.delete()
        if not VllTombstone.objects.filter(leases=tombstone.leases).exists():
            leases_release(tombstone.leases, now=now)
