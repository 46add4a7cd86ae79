"""The facts for the diagnosis of a line, all read at one moment.

A fact without a recent report is None, not False.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Prefetch, prefetch_related_objects

from portal.core.network.vlan_tags import Tagging
from portal.events.models import Event
from portal.inventory.interfaces import slow_ports
from portal.inventory.models import FRESH, ObservedRouter, Port, Router, RouterSilence
from portal.telemetry.models import Sample
from portal.telemetry.router_events import VLAN_RESTORED
from portal.telemetry.router_losses import drops_at_port
from portal.telemetry.router_silences import listened
from portal.vll.activation_test_procedure import Finding as FramesFinding
from portal.vll.models import ActivationTest, Order, Vll, VllEnd
from portal.vll.path_status import PathStatus, path_of, path_status
from portal.vll.queries import unchanged_since
from portal.vll.sentences import activation_test_sentence, black_hole_sentence

# The agents count frames in intervals of ten seconds.
COUNTED_OVER = timedelta(seconds=10)
# The diagnosis mentions a restored VLAN for this time.
RECENTLY_RESTORED = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Counted:
    """The frames that arrived at an end in its newest ten seconds.

    ``dropped``: the frames that its policer dropped, None without a policer. Frames from before the line's
    last change are not counted. ``settled``: at least two reports began after that change.
    """

    frames_in: int
    dropped: int | None
    since: datetime
    until: datetime
    settled: bool = True


@dataclass(frozen=True, slots=True)
class EndFacts:
    """The facts about one end, according to the last report of its router's agent."""

    router: str
    port: str
    reported_at: datetime | None
    # The agent sent the last report, but VPP was down or did not respond.
    vpp_away: bool
    silent_since: datetime | None
    # The time when the NOC declared the router dead.
    dead_since: datetime | None
    locked_since: datetime | None
    maintenance_since: datetime | None
    link_up: bool | None
    # The port is shut down because the link of the other end is down.
    shut_down: bool
    reachable: bool | None
    # True if the end was verified and no agent observed a difference since; None while the portal works on
    # it.
    as_ordered: bool | None
    status: str
    status_at: datetime | None
    reason: dict[str, Any] | None
    drift: list[dict[str, Any]]
    counted: Counted | None
    # ``by_vlan``: the line takes only frames with its own VLANs. ``port_drops``: the number of frames, of any
    # line, that the port recently dropped on receipt; None if not counted.
    by_vlan: bool
    port_drops: int | None
    # When the end's frames last arrived again, after VPP had lost the VLAN and the agent had rebuilt the
    # sub-interface. None if that was not recent.
    vlan_restored_at: datetime | None
    # The port, as ``slow_ports`` returns it. None if its link has at least the agreed speed.
    slow_port: Port | None = None

    @property
    def is_fresh(self) -> bool:
        """Whether the facts about this end are recent."""
        return self.silent_since is None and self.reported_at is not None


@dataclass(frozen=True, slots=True)
class PathMtuFacts:
    """The result of the probes on the line's path. Sizes of IP packets in bytes.

    ``needed``: the size of the packet that carries the line's largest frame.
    """

    needed: int
    # The size of the largest packet that passed in the last successful probe.
    verified: int | None
    # The finding of the last probe. None if all frames arrived.
    finding: FramesFinding | None
    at: datetime
    detail: str

    @property
    def loses_its_frames(self) -> bool:
        """Whether the path loses frames of this line."""
        large = self.finding is FramesFinding.LARGE_FRAMES_LOST
        return self.finding is not None and not (large and (self.verified or 0) >= self.needed)


@dataclass(frozen=True, slots=True)
class ActivationTestFacts:
    """The line's newest activation test in which frames were sent."""

    passed: bool
    sentence: str
    at: datetime


@dataclass(frozen=True, slots=True)
class LineFacts:
    """All facts about a line at the time ``at``. ``ends`` has the facts about its ends by side."""

    at: datetime
    lifecycle: str
    admin_status: str
    tunnelled: bool
    # The line's open order.
    order: Order | None
    # Whether the agent API has received reports in the last 20 s.
    portal_listens: bool
    ends: dict[str, EndFacts]
    # None if the line has no tunnel or is not in service.
    path: PathStatus | None
    # None if no probe has been sent.
    path_mtu: PathMtuFacts | None
    last_test: ActivationTestFacts | None
    # Since when the MTUs of the path's links have been too small for the line's largest frames.
    not_carried_since: datetime | None = None


def facts_of(vll: Vll, *, now: datetime) -> LineFacts:
    """Read the facts about a line, with a fixed number of SQL statements."""
    ends_with_routers = VllEnd.objects.select_related("port__router__observed")
    # The second lookup is for callers that have read the ends without their routers.
    prefetch_related_objects([vll], Prefetch("ends", ends_with_routers), "ends__port__router__observed")
    ends = sorted(vll.ends.all(), key=lambda end: end.side)
    silences = dict(
        RouterSilence.objects.filter(
            until__isnull=True, router__in={end.port.router_id for end in ends}
        ).values_list("router_id", "since")
    )
    newest = vll.orders.order_by("-ordered_at", "-id").first()
    counted = _counted(vll, unchanged_since(vll, newest), now)
    drops = {end.side: drops_at_port(end.port, now=now, over=FRESH) for end in ends}
    slow = {port.pk: port for port in slow_ports(Port.objects.filter(pk__in=[end.port_id for end in ends]))}
    restored = _restored(vll, now)
    return LineFacts(
        at=now,
        lifecycle=vll.lifecycle,
        admin_status=vll.admin_status,
        tunnelled=vll.family is not None,
        # Only the newest order can be open.
        order=None if newest is None or newest.is_terminal else newest,
        # 20 s are longer than a restart of the agent API.
        portal_listens=bool(listened(now - timedelta(seconds=20), now)),
        ends={
            end.side: _end(
                end,
                vll,
                silences,
                now,
                counted=counted.get(end.side),
                port_drops=drops[end.side],
                vlan_restored_at=restored.get(end.side),
                slow_port=slow.get(end.port_id),
            )
            for end in ends
        },
        path=path_status(vll),
        path_mtu=_path_mtu(vll),
        last_test=_last_test(vll),
        not_carried_since=vll.not_carried_since,
    )


def _end(end: VllEnd, vll: Vll, silences: dict[int, datetime], now: datetime, **read: Any) -> EndFacts:
    """Return the facts about an end. ``read``: the facts that were read for both ends together."""
    router = end.port.router
    seen: ObservedRouter | None = getattr(router, "observed", None)
    settled = end.status_revision == vll.revision and end.status != VllEnd.Status.UNANSWERED
    return EndFacts(
        router=router.name,
        port=end.port.interface,
        reported_at=None if seen is None else seen.reported_at,
        vpp_away=seen is not None and (not seen.vpp_connected or seen.vpp_hangs),
        silent_since=_silent_since(router, seen, silences, now),
        dead_since=router.dead_since,
        locked_since=router.locked_since or router.frozen_since,
        maintenance_since=router.maintenance_since,
        link_up=end.link_up,
        shut_down=end.shut_down,
        reachable=end.reachable,
        as_ordered=end.is_as_ordered if settled else None,
        status=end.status,
        status_at=end.status_at,
        reason=end.reason,
        drift=end.drift,
        by_vlan=end.tagging != Tagging.UNTAGGED,
        **read,
    )


def _silent_since(
    router: Router, seen: ObservedRouter | None, silences: dict[int, datetime], now: datetime
) -> datetime | None:
    if router.pk in silences:
        return silences[router.pk]
    if seen is not None and seen.reported_at < now - FRESH:
        return seen.reported_at
    return None


def _counted(vll: Vll, changed: datetime | None, now: datetime) -> dict[str, Counted]:
    """Return for each side the frames of the newest ten seconds, but not those from before ``changed``."""
    oldest = now - FRESH
    fresh = Sample.objects.filter(vll_id=vll.pk, to_at__gt=oldest)
    if changed is not None:
        fresh = fresh.filter(from_at__gte=changed)
    rows: dict[str, list[Sample]] = defaultdict(list)
    for row in fresh.order_by("-to_at"):
        rows[row.side].append(row)
    long_ago = changed is None or changed <= oldest
    return {side: _sum(of_side, settled=long_ago or len(of_side) > 1) for side, of_side in rows.items()}


def _sum(fresh: list[Sample], *, settled: bool) -> Counted:
    """Add up the samples of the newest ten seconds. ``fresh`` has the newest sample first.

    If the end had a policer during only some samples, ``dropped`` is the sum over those samples.
    """
    rows = [row for row in fresh if row is fresh[0] or row.from_at >= fresh[0].to_at - COUNTED_OVER]
    dropped = [row.violate_packets for row in rows if row.violate_packets is not None]
    return Counted(
        frames_in=sum(row.in_packets for row in rows),
        dropped=sum(dropped) if dropped else None,
        since=rows[-1].from_at,
        until=rows[0].to_at,
        settled=settled,
    )


def _restored(vll: Vll, now: datetime) -> dict[str, datetime]:
    """Return for each side the time when its VLAN was last restored, if that was recent."""
    recent = Event.objects.filter(vll_id=vll.pk, kind=VLAN_RESTORED, at__gt=now - RECENTLY_RESTORED)
    return {event.data["end"]: event.at for event in recent.order_by("at")}


def _path_mtu(vll: Vll) -> PathMtuFacts | None:
    path = path_of(vll)
    if path is None or path.probed_at is None:
        return None
    return PathMtuFacts(
        needed=vll.tunnel_packet,
        verified=path.verified_ip_mtu,
        finding=FramesFinding(path.finding) if path.finding else None,
        at=path.probed_at,
        detail=black_hole_sentence(path) if path.black_hole_since else path.finding,
    )


def _last_test(vll: Vll) -> ActivationTestFacts | None:
    ended = (ActivationTest.State.PASSED, ActivationTest.State.FAILED)
    test = vll.activation_tests.filter(state__in=ended).order_by("-finished_at").first()
    if test is None or test.finished_at is None:
        return None
    return ActivationTestFacts(
        test.state == ActivationTest.State.PASSED, activation_test_sentence(test), test.finished_at
    )
