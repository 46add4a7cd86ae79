"""Alarms about routers, their ports and their links.

Routers may be silent, have no working VPP, or report problems. Ports and routers may be nearly fully booked.
Links and ports may differ from their declaration.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, F, Max, OuterRef, Prefetch, Q, QuerySet
from django.db.models.functions import Coalesce

from portal.alarms.affected_lines import on_routers
from portal.alarms.kinds import NOBODY, PORTAL, Affected, AlarmCondition, Kind
from portal.allocation.cpu_core_bookings import core_use_of
from portal.allocation.models import RouterLoad
from portal.inventory import interfaces
from portal.inventory.models import FRESH, Port, Router, RouterCertificate, RouterSilence
from portal.inventory.queries import interface_missing, links_with_observed_mtu, mtu_mismatch
from portal.telemetry.models import AgentApiUptime
from portal.telemetry.router_losses import losing, recent_buffers, recent_losses, short_of_buffers
from portal.telemetry.sample_times import MAX_OFFSET

# The agent API records every ten seconds that it runs. A restart takes less than this time.
_AWAY_AFTER = timedelta(seconds=45)
# An agent that has started reports within seconds. Without a report within this time after the enrolment, the
# router counts as silent.
# The clock is measured with each report of counters.
_CLOCK_MEASURED_WITHIN = timedelta(minutes=5)
_REPORTS_WITHIN = timedelta(minutes=5)
# Alarm if a certificate expires within this time. The agent should have renewed it nine days earlier.
NOT_RENEWED = timedelta(days=21)


def reports_away(now: datetime) -> Iterator[AlarmCondition]:
    """Yield an alarm if the agent API has stopped. The state of all routers is then unknown."""
    newest = (
        AgentApiUptime.objects.order_by("-last_recorded_at")
        .values_list("last_recorded_at", flat=True)
        .first()
    )
    if newest is not None and newest < now - _AWAY_AFTER:
        yield AlarmCondition(kind=Kind.REPORTS_AWAY, object=PORTAL, name=PORTAL, since=newest)


def silent(now: datetime) -> Iterator[AlarmCondition]:
    """Yield silent routers, as portal.telemetry.router_silences defines them.

    A router is silent only if the agent API ran during the silence. A router that never reported after its
    enrolment is silent too.
    """
    routers = list(_silent_routers(now).order_by("name"))
    affected = on_routers([router.pk for router in routers])
    for router in routers:
        [silence] = getattr(router, "going_on", None) or [None]
        since = None if silence is None else silence.since
        vpp_state = "unheard" if silence is None else _vpp_state(silence)
        yield _of(router, Kind.ROUTER_SILENT, affected, since=since, facts={"standing": vpp_state})


def without_vpp(now: datetime) -> Iterator[AlarmCondition]:
    """Yield routers that reported recently, and whose VPP is down or does not respond."""
    routers = list(_without_vpp(now).select_related("observed").order_by("name"))
    affected = on_routers([router.pk for router in routers])
    for router in routers:
        observed = router.observed
        kind = Kind.VPP_HANGS if observed.vpp_hangs else Kind.VPP_AWAY
        yield _of(router, kind, affected, since=observed.vpp_away_since)


def troubled_routers(now: datetime) -> set[int]:
    """Return the routers that are silent or have no VPP, which explains faults of their lines and paths."""
    troubled = _silent_routers(now).values("pk").union(_without_vpp(now).values("pk"))
    return {row["pk"] for row in troubled}


def agents(now: datetime) -> Iterator[AlarmCondition]:
    with_agent = _with_agent().order_by("name")
    for router in with_agent.filter(observed__generation_stored__gt=F("generation")):
        yield _of(router, Kind.AGENT_AHEAD)
    unread = with_agent.filter(observed__isnull=False).exclude(observed__set_aside=[])
    for router in unread.select_related("observed"):
        yield _of(router, Kind.FILES_ASIDE, facts={"files": router.observed.set_aside})
    good = Q(certificates__revoked_at__isnull=True)
    # The certificate that the agent presents, if known. The agent may not have stored the newest certificate.
    in_use = good & Q(certificates__fingerprint=F("observed__certificate_shown"))
    expires = "certificates__expires_at"
    ending = with_agent.annotate(ends=Coalesce(Max(expires, filter=in_use), Max(expires, filter=good)))
    for router in ending.filter(ends__lt=now + NOT_RENEWED):
        yield _of(router, Kind.CERTIFICATE_ENDS, facts={"ends": f"{router.ends:%Y-%m-%d %H:%M}"})
    kept = Router.objects.exclude(locked_since=None, frozen_since=None, maintenance_since=None)
    for router in kept.order_by("name"):
        since = router.locked_since or router.frozen_since or router.maintenance_since
        facts = {"held": router.locked_since is not None, "frozen": router.frozen_since is not None}
        yield _of(router, Kind.WITHHELD, since=since, facts=facts)


def wrong_clocks(now: datetime) -> Iterator[AlarmCondition]:
    """Yield routers whose wall clock differs from the portal's clock by more than MAX_OFFSET."""
    most_ms = MAX_OFFSET // timedelta(milliseconds=1)
    measured = _with_agent().filter(agent_clock__measured_at__gte=now - _CLOCK_MEASURED_WITHIN)
    wrong = measured.exclude(agent_clock__offset_ms__range=(-most_ms, most_ms))
    for router in wrong.select_related("agent_clock").order_by("name"):
        yield _of(router, Kind.CLOCK_WRONG, facts={"offset_ms": round(router.agent_clock.offset_ms, -4)})


def lossy(now: datetime) -> Iterator[AlarmCondition]:
    """Yield interfaces that dropped frames in the last ten minutes, and routers with few free buffers."""
    for loss in losing(recent_losses(now)):
        yield AlarmCondition(
            kind=Kind.LOSSES,
            object=f"interface:{loss.router_id}:{loss.interface}",
            name=f"{loss.router}:{loss.interface}",
            facts={name: getattr(loss, name) for name in ("ratio", "reasons", "rx_packets", "tx_packets")},
            routers=(loss.router_id,),
        )
    for short in short_of_buffers(recent_buffers(now)):
        yield AlarmCondition(
            kind=Kind.FEW_BUFFERS,
            object=f"router:{short.router_id}",
            name=short.router,
            facts={"free": short.free, "all": short.buffers},
            routers=(short.router_id,),
        )


def _with_agent() -> QuerySet[Router]:
    return Router.objects.exclude(agent_url="")


def _silent_routers(now: datetime) -> QuerySet[Router]:
    going_on = RouterSilence.objects.filter(until__isnull=True)
    # A router that was never enrolled cannot report, so it is not silent.
    enrolled = RouterCertificate.objects.filter(router=OuterRef("pk"), issued_at__lt=now - _REPORTS_WITHIN)
    never = Q(observed__isnull=True) & Exists(enrolled)
    found = _with_agent().filter(never | Exists(going_on.filter(router=OuterRef("pk"))))
    return found.prefetch_related(Prefetch("silences", going_on, to_attr="going_on"))


def _without_vpp(now: datetime) -> QuerySet[Router]:
    fresh = _with_agent().filter(observed__reported_at__gte=now - FRESH)
    return fresh.filter(Q(observed__vpp_hangs=True) | Q(observed__vpp_away_since__isnull=False))


def _vpp_state(silence: RouterSilence) -> str:
    """Return the state of the router's VPP during the silence: down, unknown or forwards."""
    if silence.counts_as_down:
        return "down"
    return "unknown" if silence.forwarded_at is None else "forwards"


def _of(router: Any, kind: Kind, affected: dict[int, Affected] | None = None, **more: Any) -> AlarmCondition:
    return AlarmCondition(
        kind=kind,
        object=f"router:{router.pk}",
        name=router.name,
        routers=(router.pk,),
        affected=(affected or {}).get(router.pk, NOBODY),
        **more,
    )


# The booked fraction of bandwidth or cores from which the ISP must extend the network.
NEARLY_FULL = 0.8


def links(now: datetime) -> Iterator[AlarmCondition]:
    for link in links_with_observed_mtu().order_by("pk"):
        if mtu_mismatch(link):
            yield _link(link, Kind.LINK_MTU)
        if interface_missing(link):
            yield _link(link, Kind.LINK_INTERFACE)


def full_ports(now: datetime) -> Iterator[AlarmCondition]:
    """Yield ports on which nearly all bandwidth that is bookable at their present speed is booked."""
    booked = interfaces.booked_ports(Port.objects.select_related("router"))
    full = booked.filter(Q(booked_part__gte=NEARLY_FULL) | Q(booked_part=None))
    for port in full.order_by("pk"):
        yield _of_port(port, Kind.PORT_FULL, {"booked": port.booked_bps, "all": port.bookable_now_bps})


def slow_ports(now: datetime) -> Iterator[AlarmCondition]:
    """Yield customer ports that negotiated less than agreed, or whose bond has lost a member."""
    reporting = Q(router__observed__reported_at__gte=now - FRESH, router__observed__vpp_connected=True)
    ports = Port.objects.filter(reporting, retired_at=None, customer__isnull=False).select_related("router")
    for port in interfaces.slow_ports(ports):
        facts = {"runs": port.link_bps, "agreed": port.speed_bps}
        facts |= {"booked": port.booked_bps, "left": port.bookable_now_bps}
        yield _of_port(port, Kind.PORT_SLOW, facts)


def full_routers(now: datetime) -> Iterator[AlarmCondition]:
    booked = Router.objects.filter(pk__in=RouterLoad.objects.filter(booked__gt=0).values("router"))
    routers = list(booked.select_related("observed").order_by("pk"))
    use = core_use_of(routers)
    for router in routers:
        its = use[router.pk]
        if its.part >= NEARLY_FULL:
            facts = {"percent": its.percent, "booked": its.booked_cores, "all": its.bookable_cores}
            yield _of(router, Kind.ROUTER_FULL, facts=facts)


def _of_port(port: Port, kind: Kind, facts: dict[str, Any]) -> AlarmCondition:
    return AlarmCondition(
        kind=kind, object=f"port:{port.pk}", name=str(port), facts=facts, routers=(port.router_id,)
    )


def _link(link: Any, kind: Kind) -> AlarmCondition:
    both = (link.a_router_id, link.z_router_id)
    return AlarmCondition(kind=kind, object=f"link:{link.pk}", name=str(link), routers=both)
