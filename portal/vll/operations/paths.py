"""The paths that tunnels use, and probes of the largest frame that a path carries."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet

from portal.allocation.models import VniLease
from portal.allocation.tunnel_leases import PROBE_VNI
from portal.core.network.encapsulations import Encapsulation, Transport
from portal.core.network.required_mtu import MtuPolicy, overhead
from portal.events.announcements import announce
from portal.events.models import Event
from portal.inventory.models import Router
from portal.vll.activation_test_procedure import Finding, Findings
from portal.vll.convergence.requests import converge_routers
from portal.vll.models import TunnelPath, Vll
from portal.vll.operations.tombstones import EndAnswer
from portal.vll.path_status import PathKey, lines_beyond, paths_in_use

# The interval between measurements of round trips on each path.
ROUND_TRIPS_EVERY = timedelta(minutes=1)
_AT_ONCE = 1000
# Only transports that a VNI identifies. A GRE tunnel would take a key or an address pair that a line may
# need.
_PROBES = (Encapsulation.VXLAN, Encapsulation.GENEVE)


def tunnel_paths_keep(*, now: datetime) -> None:
    """Watch every path that a line in service uses, and no other. Create and remove probes to match.

    Routers that have not answered about a probe get it again: a message may have been lost. Two concurrent
    runs give the same result. There may be a hundred thousand paths; a transaction locks at most a thousand.
    """
    used = paths_in_use()
    _add_new(used, now)
    paths = list(TunnelPath.objects.order_by("pk"))
    routers = Router.objects.select_related("observed").in_bulk(
        {router for path in paths for router in (path.a_router_id, path.z_router_id)}
    )
    may_probe = settings.LONGLINE_PROBE_EVERY_S > 0 and not VniLease.objects.filter(vni=PROBE_VNI).exists()

    def changes(path: TunnelPath) -> bool:
        """Apply the wanted state to ``path``; return whether anything changed."""
        needed = used.get((path.a_router_id, path.z_router_id, path.family))
        before = (path.in_use, path.needed_ip_mtu, path.probe_transport)
        path.in_use, path.needed_ip_mtu = needed is not None, needed or path.needed_ip_mtu
        _probe_choose(path, routers, may_probe=may_probe)
        return before != (path.in_use, path.needed_ip_mtu, path.probe_transport)

    _store([path.pk for path in paths if changes(path)], changes)
    pending = {
        router
        for path in paths
        for router in (path.a_router_id, path.z_router_id)
        if path.probe_revision > path.answer(path.side_of(router))[1]
    }
    converge_routers(pending)


def _add_new(used: Mapping[PathKey, int], now: datetime) -> None:
    known = set(TunnelPath.objects.values_list("a_router_id", "z_router_id", "family"))
    new = [
        TunnelPath(
            # The id depends only on the path. After a restore of a backup, the path has the same id, so
            # routers accept their probe again.
            id=uuid5(NAMESPACE_URL, f"urn:longline:path:{a}:{z}:{family}"),
            a_router_id=a,
            z_router_id=z,
            family=family,
            needed_ip_mtu=used[a, z, family],
            round_trips_due_at=_first_round_trips(a, now),
        )
        for a, z, family in sorted(used.keys() - known)
    ]
    # Do not use ``batch_size``: it would make this one transaction.
    for at in range(0, len(new), _AT_ONCE):
        TunnelPath.objects.bulk_create(new[at : at + _AT_ONCE], ignore_conflicts=True)


def _store(chosen: Sequence[UUID], changes: Callable[[TunnelPath], bool]) -> None:
    """Read the rows again under a lock and apply the changes, because a probe may have ended since the first
    read.
    """
    columns = ["in_use", "needed_ip_mtu", "probe_transport", "probe_revision", "probe_due_at"]
    for at in range(0, len(chosen), _AT_ONCE):
        with transaction.atomic():
            locked = TunnelPath.objects.select_for_update().order_by("pk")
            changed = [path for path in locked.filter(pk__in=chosen[at : at + _AT_ONCE]) if changes(path)]
            TunnelPath.objects.bulk_update(changed, columns)


def _first_round_trips(router_id: int, now: datetime) -> datetime:
    """Return the time of the first measurement. The time depends only on the router, because one task
    measures all paths of the router.
    """
    return now.replace(second=0, microsecond=0) + ROUND_TRIPS_EVERY * (router_id * 7 % 60) / 60


def _probe_choose(path: TunnelPath, routers: Mapping[int, Router], *, may_probe: bool) -> None:
    a, z = routers[path.a_router_id], routers[path.z_router_id]
    transport = _transport(a, z, path.family) if may_probe and path.in_use else ""
    if transport != path.probe_transport:
        path.probe_transport, path.probe_due_at = transport, None
        path.probe_revision += 1


def _transport(a: Router, z: Router, family: int) -> str:
    """Return the transport with which both routers can build a probe, or ""."""
    if not all(router.agent_url and router.loopback(family) for router in (a, z)):
        return ""
    can = _can(a) & _can(z)
    return next((str(Transport.of(each, family)) for each in _PROBES if each in can), "")


def _can(router: Router) -> set[str]:
    """Return the encapsulations with which the router can build a probe."""
    seen = getattr(router, "observed", None)
    return set(seen.encapsulations or ()) if seen is not None and seen.probes else set()


# The duration of a worker's claim, longer than sending the frames. After it, another worker takes over.
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
    """Store the test frames' results on the path ``probed``. Announce the start or end of a black hole.

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
