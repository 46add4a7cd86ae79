"""The ends on a router and their problems, from the router's newest answers and reports."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count
from django.utils.translation import gettext as _

from portal.allocation.cpu_core_usage import CoreUse, core_use_of
from portal.inventory.models import Router
from portal.vll.models import Attempt, VllEnd, VllTombstone
from portal.vll.states import TERMINAL_LIFECYCLES
from portal.web.status_labels import END_COUNTS

# The maximum length of each list. The counts include all ends.
SHOWN = 50


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between VPP and the state that the agent has set.

    ``actual``: the value in VPP. ``desired``: the value that the agent has set. ``repairs``: the number of
    repairs, if the difference comes back after each repair; otherwise 0.
    """

    end: VllEnd
    object: str
    field: str
    desired: str
    actual: str
    repairs: int = 0


@dataclass(frozen=True, slots=True)
class RouterContents:
    """The ends on a router, and their problems.

    * ``statuses``: for each answer (status), the number of ends with this newest answer.
    * ``ends``: the number of all ends.
    * ``leaving``: the number of removed or moved ends whose removal the router has not confirmed.
    * ``quarantined``: ends that the agent has created but that are not part of its intent.
    """

    statuses: list[tuple[str, int]]
    ends: int
    leaving: int
    quarantined: list[dict[str, Any]]
    answered_at: datetime | None
    conflicts: list[VllEnd]
    drift: list[Difference]
    contested: list[Difference]
    vlan_losses: list[VllEnd]
    cores: CoreUse | None


def contents_of(router: Router) -> RouterContents:
    """Return the ends on ``router``. The caller should read the router with
    ``select_related("observed")``.
    """
    live = VllEnd.objects.filter(port__router=router).exclude(vll__lifecycle__in=TERMINAL_LIFECYCLES)
    counted = dict(live.values_list("status").annotate(ends=Count("pk")).order_by("status"))
    # The rows are not sorted here. With ORDER BY, PostgreSQL would read all lines in the sorted order if few
    # ends match.
    shown = live.select_related("vll", "port").order_by()
    answered = router.attempts.filter(outcome=Attempt.Outcome.ANSWERED).order_by("-id").first()
    return RouterContents(
        statuses=[(_(END_COUNTS.get(str(status), str(status))), count) for status, count in counted.items()],
        ends=sum(counted.values()),
        leaving=VllTombstone.objects.filter(router=router).exclude(status=VllEnd.Status.REMOVED).count(),
        quarantined=_quarantined(answered),
        answered_at=answered.finished_at if answered else None,
        conflicts=list(shown.filter(status=VllEnd.Status.CONFLICT)[:SHOWN]),
        drift=[_difference(end, each) for end in shown.exclude(drift=[])[:SHOWN] for each in end.drift],
        contested=[
            _difference(end, each) for end in shown.exclude(contested=[])[:SHOWN] for each in end.contested
        ],
        vlan_losses=list(shown.filter(vlan_loss__isnull=False)[:SHOWN]),
        cores=core_use_of([router])[router.pk] if router.has_agent else None,
    )


def _quarantined(answered: Attempt | None) -> list[dict[str, Any]]:
    answer = answered.answer if answered else {}
    return list(answer.get("quarantined", []))[:SHOWN]


def _difference(end: VllEnd, found: dict[str, Any]) -> Difference:
    object_, field, desired, actual = (
        str(found.get(name, "–")) for name in ("object", "field", "desired", "actual")
    )
    return Difference(end, object_, field, desired, actual, repairs=found.get("repairs", 0))
