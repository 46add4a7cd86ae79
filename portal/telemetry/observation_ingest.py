"""Taking in what an agent observes: its router, its VLL ends, and the fact that it is there again."""

from datetime import datetime, timedelta
from threading import BoundedSemaphore
from typing import Any

from django.db import transaction
from django.db.models import Q
from msgspec.structs import astuple

from portal.core.bandwidth_profile import Policing
from portal.core.path_bfd import wanted_watch
from portal.events.outbox import send_task
from portal.inventory.models import ObservedRouter, Router
from portal.inventory.operations.observation_store import observed_facts, observed_store
from portal.inventory.reported_observation import ObservedReport
from portal.telemetry.router_silences import silence_end
from portal.telemetry.unchanged_observation import unchanged_store
from portal.vll.models import RouterConvergence, VllEnd, intent_is_wanted
from portal.vll.operations import ends_observed
from portal.vll.operations.convergence_requests import intents_want, router_changed
from portal.vll.operations.oper_status import FRESH
from portal.vll.states import IN_SERVICE
from portal.vll.task_names import CONVERGE_ROUTER
from portal.vll.unconfirmed_ends import unconfirmed_ends

# Reports come every 10 s: one was missed.
_MISSED = timedelta(seconds=15)
# Of routers that were silent each process reads so many at once: the other half of its threads
# (portal.processes.gunicorn_agent_api) is for those that are not.
RETURNS_AT_ONCE = 4
_RETURNS = BoundedSemaphore(RETURNS_AT_ONCE)


class Busy(Exception):
    """Enough routers that were silent are being read: this one is to tell its report again later."""


def observation_take(*, router: Router, report: ObservedReport, now: datetime) -> bool:
    """Store a report; False when a later one has been stored already.

    Raises ``Busy`` instead of keeping routers waiting that are not silent: a network that comes back at once
    would else be read more slowly than it falls silent again, and never recover.
    """
    last = getattr(router, "observed", None)
    facts = observed_facts(report, now)
    if last is not None and now - last.reported_at <= _MISSED and not _watches_otherwise(report):
        done = unchanged_store(router=router, last=last, report=report, facts=facts, now=now)
        if done:
            return True
    if last is not None and not _was_silent(last, now):
        return _take(router, report, facts, now)
    if not _RETURNS.acquire(blocking=False):
        raise Busy
    try:
        return _take(router, report, facts, now)
    finally:
        _RETURNS.release()


@transaction.atomic
def _take(router: Router, report: ObservedReport, facts: dict[str, Any], now: datetime) -> bool:
    taken = observed_store(router=router, report=report, facts=facts, now=now)
    if taken is None:
        return False
    last = taken.before
    silent_since = last.reported_at if last is not None and _was_silent(last, now) else None
    was_down = silent_since is not None and silence_end(router=router, heard=silent_since, now=now)
    # Such a list was valid, and has been compared with the lines.
    repeated = last is not None and last.digests.get("ends") == report.digests["ends"]
    ends_observed(
        router=router,
        ends=report.ends,
        look=report.look,
        repeated=repeated,
        anew=last is None or silent_since is not None or last.vpp_absent != report.vpp.absent,
        unknown_after=None if was_down else silent_since,
        now=now,
    )
    back = _is_back(last, report, now)
    ended = back and _end_backoff(router, now)
    otherwise = _polices_otherwise(router, last, report) or report.labels != (
        last is not None and last.labels
    )
    convergence = RouterConvergence.objects.filter(router=router)
    if otherwise:
        intents_want(convergence)
    elif _watches_otherwise(report):
        otherwise = bool(intents_want(convergence.exclude(intent_is_wanted())))
    changed = back or taken.interfaces_changed or (not repeated and _is_built_meanwhile(router, report))
    ask = changed and router_changed(router.pk, now=now)
    if ask or ended or otherwise:
        send_task(CONVERGE_ROUTER, router.pk, now=now)
    return True


def _was_silent(last: ObservedRouter, now: datetime) -> bool:
    return last.found_silent or now - last.reported_at > FRESH


def _is_back(last: ObservedRouter | None, report: ObservedReport, now: datetime) -> bool:
    """Whether this is the first sign of life after a while, of the agent or of its VPP.

    One that reports all the time, and yet does not answer us, keeps its pauses: otherwise a few such
    routers would keep every worker busy.
    """
    return (
        last is None
        or str(last.boot_id) != report.boot_id
        or now - last.reported_at > _MISSED
        or (report.vpp.connected and not last.vpp_connected)
        or _restarted(last.vpp_booted_at, report.vpp.booted_at)
    )


def _restarted(before: datetime | None, now: datetime | None) -> bool:
    """Whether it is another run of VPP, as far as both are known: one may come and go between two reports."""
    return before is not None and now is not None and before != now


def _is_built_meanwhile(router: Router, report: ObservedReport) -> bool:
    """Whether an end is seen as it is wanted that was not confirmed: agents go on trying by themselves."""
    if not RouterConvergence.objects.filter(router=router, ask_at__isnull=False).exists():
        return False
    waiting = unconfirmed_ends().filter(port__router=router, vll__wanted_present=True)
    wanted = {
        (str(vll), side): revision
        for vll, side, revision in waiting.values_list("vll", "side", "vll__revision")
    }
    return bool(wanted) and any(
        end.in_sync and wanted.get((end.vll, end.side)) == end.revision for end in report.ends
    )


def _polices_otherwise(router: Router, last: ObservedRouter | None, report: ObservedReport) -> bool:
    """Whether VPP can police other ends than before, as after an upgrade, and has ends at all."""
    before = last.policing if last else Policing.NONE
    return (
        report.vpp.connected
        and report.policing != before
        and VllEnd.objects.filter(port__router=router, vll__lifecycle__in=IN_SERVICE).exists()
    )


def _watches_otherwise(report: ObservedReport) -> bool:
    """Whether the intent that the agent holds has paths watched otherwise than is set: the setting changed,
    or what its VPP can do.
    """
    if not report.vpp.connected or report.generation.held is None:
        return False
    return wanted_watch(report.path_watch) != (report.watching and astuple(report.watching))


def _end_backoff(router: Router, now: datetime) -> bool:
    """An agent that is back can be asked: no need to wait for the end of a long pause, nor for a message that
    may stand behind routers that do not answer.
    """
    waits = RouterConvergence.objects.filter(Q(retry_at__gt=now) | Q(resent_at__isnull=False), router=router)
    return bool(waits.update(retry_at=None, resent_at=None))
