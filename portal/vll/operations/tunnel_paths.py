"""Keep the list of watched paths and their probes. The paths of lines in service are watched."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from uuid import NAMESPACE_URL, UUID, uuid5

from django.conf import settings
from django.db import transaction

from portal.allocation.models import VniLease
from portal.allocation.vni_leases import PROBE_VNI
from portal.core.network.encapsulations import Encapsulation, Transport
from portal.events.outbox import send_tasks
from portal.inventory.models import Router
from portal.vll.models import TunnelPath
from portal.vll.paths_in_use import PathKey, paths_in_use
from portal.vll.task_names import CONVERGE_ROUTER

# The interval between measurements of round trips on each path.
ROUND_TRIPS_EVERY = timedelta(minutes=1)
_AT_ONCE = 1000
# Only transports that a VNI identifies. A GRE tunnel would need a key or a pair of addresses that a line may
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
        needed = used.get(_key(path))
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
    if pending:
        with transaction.atomic():
            send_tasks(CONVERGE_ROUTER, [(router,) for router in sorted(pending)], now=now)


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


def _key(path: TunnelPath) -> PathKey:
    return path.a_router_id, path.z_router_id, path.family


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
