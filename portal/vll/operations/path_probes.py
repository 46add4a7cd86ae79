"""Probes of paths: the routers' answers about them, and the results of their test frames."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet

from portal.core.network.encapsulations import Transport
from portal.core.network.required_mtu import MtuPolicy, overhead
from portal.events.models import Event
from portal.events.outbox import announce
from portal.inventory.models import Router
from portal.vll.activation_test_procedure import Finding, Findings
from portal.vll.models import TunnelPath, Vll
from portal.vll.operations.router_answers import EndAnswer
from portal.vll.paths_in_use import lines_beyond

# The duration of a worker's claim, which is longer than sending the frames takes. After that time another
# worker takes over.
CLAIM = timedelta(seconds=60)
BLACK_HOLE, BLACK_HOLE_GONE = "black_hole", "black_hole_gone"


def probes_on(router: Router) -> QuerySet[TunnelPath]:
    """Return the paths with this router at one end that have, or have had, a probe."""
    here = Q(a_router=router) | Q(z_router=router)
    return TunnelPath.objects.filter(here, probe_revision__gt=0).select_related("a_router", "z_router")


@transaction.atomic
def probe_answers_take(*, router: Router, answers: Iterable[EndAnswer], now: datetime) -> None:
    """Record a router's answers about probes; ignore other answers.

    When both routers have a probe, its test frames are due immediately.
    """
    paths = {path.pk: path for path in probes_on(router).order_by("pk")}
    for answer in answers if paths else ():
        path = paths.get(answer.vll)
        if path is None or path.side_of(router.pk) != answer.side:
            continue
        known, revision = path.answer(answer.side)
        if (known, revision) == (answer.status, answer.revision):
            continue
        newest = {
            f"{answer.side}_answer": answer.status,
            f"{answer.side}_answer_revision": answer.revision,
            f"{answer.side}_reason": answer.reason,
        }
        older = {f"{answer.side}_answer_revision__lte": answer.revision}
        TunnelPath.objects.filter(pk=path.pk, probe_revision__gte=answer.revision, **older).update(**newest)
    TunnelPath.objects.filter(_PROBED, pk__in=paths, probe_due_at=None).update(probe_due_at=now)


_PROBED = Q(
    ~Q(probe_transport=""),
    a_answer="testing",
    z_answer="testing",
    a_answer_revision=F("probe_revision"),
    z_answer_revision=F("probe_revision"),
)


def paths_to_probe(*, now: datetime) -> list[UUID]:
    """Return the ids of the paths whose probe both routers have, and whose test frames are due."""
    due = TunnelPath.objects.filter(_PROBED, probe_due_at__lte=now).order_by("probe_due_at")
    return list(due.values_list("pk", flat=True))


def path_probe_claim(path_id: UUID, *, now: datetime) -> TunnelPath | None:
    """Claim the path for one worker. Return None if the path is not due or another worker has claimed it.

    If a worker dies, another worker takes over when the claim has expired.
    """
    due = TunnelPath.objects.filter(_PROBED, pk=path_id, probe_due_at__lte=now)
    if not due.update(probe_due_at=now + CLAIM):
        return None
    return TunnelPath.objects.select_related("a_router", "z_router").get(pk=path_id)


def largest_frame(path: TunnelPath) -> int:
    """Return the size of the largest test frame in the probe, in bytes.

    In the probe's tunnel, the IP packet of this frame is as large as the largest IP packet of the lines on
    the path.
    """
    return path.needed_ip_mtu - _overhead(path)


@transaction.atomic
def path_probe_finish(probed: TunnelPath, findings: Findings, *, now: datetime) -> None:
    """Store the results of the test frames on the path ``probed``, and announce the start or end of a black
    hole.

    Results for an older revision of the probe are ignored.
    """
    path = TunnelPath.objects.select_for_update().get(pk=probed.pk)
    if path.probe_revision != probed.probe_revision:
        return
    path.probed_at = now
    path.probe_due_at = now + timedelta(seconds=settings.LONGLINE_PROBE_EVERY_S or CLAIM.total_seconds())
    path.finding = "" if findings.finding is None else findings.finding.value
    if findings.largest_passed is not None:
        path.verified_ip_mtu, path.verified_at = findings.largest_passed + _overhead(probed), now
    if findings.finding is Finding.LARGE_FRAMES_LOST and path.black_hole_since is None:
        path.black_hole_since = now
        _announce(path, BLACK_HOLE, lines_beyond(path, path.verified_ip_mtu or 0), now)
    elif findings.passed and path.black_hole_since is not None:
        _announce(path, BLACK_HOLE_GONE, _lines_with_event(path, path.black_hole_since), now)
        path.black_hole_since = None
    path.save()


def _overhead(path: TunnelPath) -> int:
    return overhead(Transport(path.probe_transport), MtuPolicy.EXACT)


def _lines_with_event(path: TunnelPath, since: datetime) -> list[Vll]:
    """Return the lines on the path whose timeline has an event about the path's black hole."""
    lines = lines_beyond(path, 0)
    events = Event.objects.filter(
        kind=f"vll.{BLACK_HOLE}", vll_id__in=[line.pk for line in lines], at__gte=since
    )
    known = set(events.values_list("vll_id", flat=True))
    return [line for line in lines if line.pk in known]


def _announce(path: TunnelPath, what: str, lines: Iterable[Vll], now: datetime) -> None:
    """Announce the event for both routers and for these lines."""
    data = {
        "path": str(path.pk),
        "routers": [path.a_router.name, path.z_router.name],
        "family": path.family,
        "largest_passed": path.verified_ip_mtu,
        "needed": path.needed_ip_mtu,
    }
    for router in (path.a_router_id, path.z_router_id):
        announce(f"router.{what}", now=now, router_id=router, data=data)
    for line in lines:
        announce(f"vll.{what}", now=now, customer_id=line.customer_id, vll_id=line.pk, data=data)


def stored_probe_answers(router: Router) -> dict[tuple[UUID, str], tuple[str, int, Any, bool]]:
    """Return a router's last answers about probes, in the form of ``stored_answers``."""
    return {
        (path.pk, side): (*path.answer(side), path.a_reason if side == "a" else path.z_reason, False)
        for path in probes_on(router)
        for side in [path.side_of(router.pk)]
    }
