"""Storage of an agent's observations of its router and its VLL ends.

The first report after a silence ends the silence. Nearly all reports are equal to the last one: one statement
stores such a report.
"""

from datetime import datetime, timedelta
from threading import BoundedSemaphore
from typing import Any

from django.db import transaction
from msgspec.structs import astuple

from portal.celery_tasks import CONVERGE_ROUTER
from portal.core.db.statements import rows_of
from portal.core.network.path_bfd import wanted_watch
from portal.events.task_requests import send_task
from portal.inventory import observation_store
from portal.inventory.models import FRESH, ObservedRouter, Router
from portal.inventory.reported_observation import ObservedReport
from portal.telemetry.oper_status import ends_observed
from portal.telemetry.router_silences import silence_end
from portal.vll.convergence.requests import intent_want, pause_end, router_changed, waits_for_query
from portal.vll.models import VllEnd
from portal.vll.queries import unconfirmed_ends
from portal.vll.states import IN_SERVICE

# Stores nothing in three cases: another report was stored since ``last`` was read; the router was found
# silent; a line of the router has changed and must be compared with the next report.
_STORE = f"""
WITH repeated AS (
    UPDATE inventory_observedrouter SET reported_at = %(now)s, sent_ms = %(sent_ms)s
    WHERE router_id = %(router)s AND reported_at = %(last_at)s AND sent_ms = %(last_sent_ms)s
      AND NOT found_silent
      AND NOT EXISTS (SELECT FROM vll_vllend e JOIN inventory_port p ON p.id = e.port_id
                      WHERE p.router_id = %(router)s AND e.changed_since_report)
    RETURNING id
), loads AS ({observation_store.LOADS_STORE.format(condition="EXISTS (SELECT FROM repeated)")})
SELECT count(*) FROM repeated
"""  # noqa: S608 - constants


def unchanged_store(
    *,
    router: Router,
    last: ObservedRouter,
    report: ObservedReport,
    facts: dict[str, Any],
    now: datetime,
) -> bool:
    """Store a report that equals ``last``. Return False if the report needs the full handling instead.

    The report needs the full handling if it differs from ``last``, or if another report was stored meanwhile.
    It also needs the full handling after a silence of the router, and if one of the router's lines has
    changed since the last report.
    """
    if not observation_store.is_unchanged(last=last, report=report, facts=facts):
        return False
    params = observation_store.loads_of(router, report.interfaces, now)
    params |= {"sent_ms": report.sent_ms, "last_at": last.reported_at, "last_sent_ms": last.sent_ms}
    [(stored,)] = rows_of(_STORE, params)
    return bool(stored)


# Reports arrive every 10 s. If none arrived for this time, a report was lost.
_MISSED = timedelta(seconds=15)
# The number of returning routers that each process handles at once: half of its threads
# (portal.processes.gunicorn_agent_api). The other half serves routers that were not silent.
RETURNS_AT_ONCE = 4
_RETURNS = BoundedSemaphore(RETURNS_AT_ONCE)


class Busy(Exception):
    """Too many returning routers are being handled. This router must send its report again later."""


def observation_take(*, router: Router, report: ObservedReport, now: datetime) -> bool:
    """Store a report. Return False if a later report is already stored.

    Raises ``Busy`` if too many routers return from a silence at once. After an outage of the network, further
    routers would otherwise become silent while their reports wait, and the portal would never recover.
    """
    last = getattr(router, "observed", None)
    facts = observation_store.observed_facts(report, now)
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
    taken = observation_store.observed_store(router=router, report=report, facts=facts, now=now)
    if taken is None:
        return False
    last = taken.before
    silent_since = last.reported_at if last is not None and _was_silent(last, now) else None
    was_down = silent_since is not None and silence_end(router=router, last_report=silent_since, now=now)
    # A list of ends with the same digest has already been validated and compared with the lines.
    repeated = last is not None and last.digests.get("ends") == report.digests["ends"]
    ends_observed(
        router=router,
        ends=report.ends,
        observation_number=report.look,
        repeated=repeated,
        router_changed=last is None or silent_since is not None or last.vpp_absent != report.vpp.absent,
        unknown_after=None if was_down else silent_since,
        now=now,
    )
    back = _is_back(last, report, now)
    if back:
        # A message of a sweep may wait behind unresponsive routers, so request convergence in any case.
        pause_end(router.pk, now=now)
    otherwise = not taken.changed.isdisjoint(ObservedRouter.IN_INTENTS) and _serves_lines(router)
    if otherwise:
        intent_want(router.pk)
    elif _watches_otherwise(report):
        otherwise = intent_want(router.pk, unless_wanted=True)
    changed = back or taken.interfaces_changed or (not repeated and _is_built_meanwhile(router, report))
    request = changed and router_changed(router.pk, now=now)
    if request or back or otherwise:
        send_task(CONVERGE_ROUTER, router.pk)
    return True


def _was_silent(last: ObservedRouter, now: datetime) -> bool:
    return last.found_silent or now - last.reported_at > FRESH


def _is_back(last: ObservedRouter | None, report: ObservedReport, now: datetime) -> bool:
    """Return whether the agent or its VPP is back: it was started again, or reports after a gap.

    A router that reports regularly but does not respond to the portal is not back. The portal therefore keeps
    its pauses between attempts. Otherwise a few such routers would keep every worker busy.
    """
    return (
        last is None
        or str(last.boot_id) != report.boot_id
        or now - last.reported_at > _MISSED
        or (report.vpp.connected and not last.vpp_connected)
        or _restarted(last.vpp_booted_at, report.vpp.booted_at)
    )


def _restarted(before: datetime | None, now: datetime | None) -> bool:
    """Return whether VPP was started again between two reports; False if a start time is unknown."""
    return before is not None and now is not None and before != now


def _is_built_meanwhile(router: Router, report: ObservedReport) -> bool:
    """Return whether the report shows an unconfirmed end as ordered, because its agent has retried."""
    if not waits_for_query(router.pk):
        return False
    waiting = unconfirmed_ends().filter(port__router=router, vll__wanted_present=True)
    wanted = {
        (str(vll), side): revision
        for vll, side, revision in waiting.values_list("vll", "side", "vll__revision")
    }
    return bool(wanted) and any(
        end.in_sync and wanted.get((end.vll, end.side)) == end.revision for end in report.ends
    )


def _serves_lines(router: Router) -> bool:
    return VllEnd.objects.filter(port__router=router, vll__lifecycle__in=IN_SERVICE).exists()


def _watches_otherwise(report: ObservedReport) -> bool:
    """Return whether the BFD settings in the agent's intent differ from the settings that should apply.

    They differ if the portal's setting was changed, or if VPP's ability to watch paths has changed.
    """
    if not report.vpp.connected or report.generation.stored is None:
        return False
    return wanted_watch(report.path_watch) != (report.watching and astuple(report.watching))
