"""Alarms about silent routers, routers without a working VPP, and problems that agents report."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, F, Max, OuterRef, Prefetch, Q, QuerySet
from django.db.models.functions import Coalesce

from portal.alarms.affected_lines import on_routers
from portal.alarms.alarm_condition import NOBODY, PORTAL, Affected, AlarmCondition
from portal.alarms.kinds import Kind
from portal.inventory.models import Router, RouterCertificate, RouterSilence
from portal.telemetry.models import AgentApiUptime
from portal.telemetry.router_losses import (
    FewBuffers,
    Loss,
    losing,
    recent_buffers,
    recent_losses,
    short_of_buffers,
)
from portal.vll.operations.oper_status import FRESH

# The agent API records every ten seconds that it runs; a restart takes less than this.
_AWAY_AFTER = timedelta(seconds=45)
# A started agent reports within seconds after its enrolment.
_REPORTS_WITHIN = timedelta(minutes=5)
# Nine days after the certificate should have been renewed.
NOT_RENEWED = timedelta(days=21)


def reports_away(now: datetime) -> Iterator[AlarmCondition]:
    """Yield an alarm if no process of the agent API runs, although one did: no router's state is known."""
    newest = (
        AgentApiUptime.objects.order_by("-last_recorded_at")
        .values_list("last_recorded_at", flat=True)
        .first()
    )
    if newest is not None and newest < now - _AWAY_AFTER:
        yield AlarmCondition(kind=Kind.REPORTS_AWAY, object=PORTAL, name=PORTAL, since=newest)


def silent(now: datetime) -> Iterator[AlarmCondition]:
    """Yield silent routers, by the product's one definition (portal.telemetry.router_silences): the agent API
    ran meanwhile.
    """
    routers = list(_silent_routers(now).order_by("name"))
    affected = on_routers([router.pk for router in routers])
    for router in routers:
        [silence] = getattr(router, "going_on", None) or [None]
        since = None if silence is None else silence.since
        vpp_state = "unheard" if silence is None else _vpp_state(silence)
        yield _of(router, Kind.ROUTER_SILENT, affected, since=since, facts={"standing": vpp_state})


def without_vpp(now: datetime) -> Iterator[AlarmCondition]:
    """Yield routers without a VPP, by fresh reports only: for a silent router the silence is the alarm."""
    routers = list(_without_vpp(now).select_related("observed").order_by("name"))
    affected = on_routers([router.pk for router in routers])
    for router in routers:
        observed = router.observed
        kind = Kind.VPP_HANGS if observed.vpp_hangs else Kind.VPP_AWAY
        yield _of(router, kind, affected, since=observed.vpp_away_since)


def troubled_routers(now: datetime) -> set[int]:
    """Return routers with an alarm that explains the faults of their lines and paths."""
    troubled = _silent_routers(now).values("pk").union(_without_vpp(now).values("pk"))
    return {row["pk"] for row in troubled}


def agents(now: datetime) -> Iterator[AlarmCondition]:
    with_agent = _with_agent().order_by("name")
    for router in with_agent.filter(observed__generation_held__gt=F("generation")):
        yield _of(router, Kind.AGENT_AHEAD)
    unread = with_agent.filter(observed__isnull=False).exclude(observed__set_aside=[])
    for router in unread.select_related("observed"):
        yield _of(router, Kind.FILES_ASIDE, facts={"files": router.observed.set_aside})
    good = Q(certificates__revoked_at__isnull=True)
    # The certificate in use, if known: the agent may not have stored the one that it was given.
    in_use = good & Q(certificates__fingerprint=F("observed__certificate_shown"))
    expires = "certificates__expires_at"
    ending = with_agent.annotate(ends=Coalesce(Max(expires, filter=in_use), Max(expires, filter=good)))
    for router in ending.filter(ends__lt=now + NOT_RENEWED):
        yield _of(router, Kind.CERTIFICATE_ENDS, facts={"ends": f"{router.ends:%Y-%m-%d %H:%M}"})
    kept = Router.objects.exclude(held_since=None, frozen_since=None, maintenance_since=None)
    for router in kept.order_by("name"):
        since = router.held_since or router.frozen_since or router.maintenance_since
        facts = {"held": router.held_since is not None, "frozen": router.frozen_since is not None}
        yield _of(router, Kind.WITHHELD, since=since, facts=facts)


def lossy(now: datetime) -> Iterator[AlarmCondition]:
    """Yield routers that dropped frames in the last ten minutes."""
    yield from map(_lossy_interface, losing(recent_losses(now)))
    yield from map(_short_of_buffers, short_of_buffers(recent_buffers(now)))


def _lossy_interface(loss: Loss) -> AlarmCondition:
    facts = {
        "ratio": loss.ratio,
        "reasons": loss.reasons,
        "rx_packets": loss.rx_packets,
        "tx_packets": loss.tx_packets,
    }
    return AlarmCondition(
        kind=Kind.LOSSES,
        object=f"interface:{loss.router_id}:{loss.interface}",
        name=f"{loss.router}:{loss.interface}",
        facts=facts,
        routers=(loss.router_id,),
    )


def _short_of_buffers(short: FewBuffers) -> AlarmCondition:
    return AlarmCondition(
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
    # A router that was never enrolled cannot report.
    enrolled = RouterCertificate.objects.filter(router=OuterRef("pk"), issued_at__lt=now - _REPORTS_WITHIN)
    never = Q(observed__isnull=True) & Exists(enrolled)
    found = _with_agent().filter(never | Exists(going_on.filter(router=OuterRef("pk"))))
    return found.prefetch_related(Prefetch("silences", going_on, to_attr="going_on"))


def _without_vpp(now: datetime) -> QuerySet[Router]:
    fresh = _with_agent().filter(observed__reported_at__gte=now - FRESH)
    return fresh.filter(Q(observed__vpp_hangs=True) | Q(observed__vpp_away_since__isnull=False))


def _vpp_state(silence: RouterSilence) -> str:
    """Return the state of the router's VPP during the silence."""
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
