"""Queries of routers that need an intent, and of routers that probably do not respond."""

from datetime import datetime, timedelta

from django.db.models import F, Q, QuerySet

from portal.celery_tasks import CONVERGE_ROUTER
from portal.events.task_requests import resend_tasks
from portal.inventory.models import FRESH, Router
from portal.vll.convergence.claims import is_free
from portal.vll.convergence.requests import intent_is_wanted
from portal.vll.models import VllEnd, VllTombstone
from portal.vll.operations.paths import probes_on
from portal.vll.queries import unconfirmed_ends

# For this time after a response, the portal assumes that the agent still has the intent that the portal sent
# last.
TRUST_STORED = timedelta(seconds=60)
# A report describes the state when the agent sent it. If the agent sent a response later, the report does
# not contradict this response.
REPORT_TRAVELS = timedelta(seconds=5)
# A router with fewer failures may have failed by coincidence.
_FAILURES = 2


def routers_due(*, now: datetime) -> list[int]:
    """Return the ids of the unclaimed routers that need an intent and have no pause after failures.

    A router needs an intent if it has unconfirmed ends, if the intent of its agent differs from the portal's
    last intent, or if another part of its intent changed. Ends that were never sent are due immediately, and
    unconfirmed ends at their ``next_query_at``. A router whose freeze ended waits until an operator
    acknowledges the differences, and then gets an intent.
    """
    free = (
        Router.objects.exclude(agent_url="")
        .filter(locked_since__isnull=True, frozen_since__isnull=True)
        .filter(Q(convergence__isnull=True) | is_free(now=now, prefix="convergence__"))
    )
    ends = unconfirmed_ends().exclude(
        status_revision=F("vll__revision"), port__router__convergence__next_query_at__gt=now
    )
    left = VllTombstone.objects.exclude(
        ~Q(status=VllEnd.Status.UNANSWERED), router__convergence__next_query_at__gt=now
    )
    wanting = Q(pk__in=ends.values("port__router")) | Q(pk__in=left.values("router"))
    return sorted(
        set(free.filter(wanting).values_list("pk", flat=True))
        | set(free.filter(intent_is_wanted("convergence__")).values_list("pk", flat=True))
        | set(_reported_after_response(free.filter(observed__freeze__over=True)).values_list("pk", flat=True))
        | set(
            _with_another_intent(free).filter(generation__gt=0).exclude(_AHEAD).values_list("pk", flat=True)
        )
    )


def routers_resend(*, now: datetime) -> list[int]:
    """Request convergence of each due router again; return the ids of these routers."""
    due = [(router_id,) for router_id in routers_due(now=now)]
    return [int(router_id) for (router_id,) in resend_tasks(CONVERGE_ROUTER, due)]


def routers_behind_agent() -> list[Router]:
    """Return the routers whose agent reports a newer intent than the database's last one.

    The cause is a restored backup. If the backup was made before a router's first intent, the router's
    generation is 0. Such a router is returned too.
    """
    return list(
        _with_another_intent(Router.objects.exclude(agent_url=""))
        .filter(_AHEAD)
        .select_related("observed", "convergence")
    )


def is_at_rest(router_id: int, *, now: datetime) -> bool:
    """Return whether this router needs no intent, because it has just confirmed everything that is wanted.

    Each order sends a message. The intent that follows the first message contains every order accepted by
    then. Without this check, the messages of these orders would send the same intent again.
    """
    responsive = Router.objects.filter(
        pk=router_id,
        convergence__failures=0,
        convergence__last_answered_at__gt=now - TRUST_STORED,
    )
    responsive = responsive.exclude(intent_is_wanted("convergence__"))
    router = responsive.exclude(pk__in=_with_another_intent(responsive)).first()
    return router is not None and not (
        unconfirmed_ends().filter(port__router=router).exists()
        or VllTombstone.objects.filter(router=router).exists()
        or any(not path.is_confirmed(path.side_of(router_id)) for path in probes_on(router))
    )


def is_unresponsive(router_id: int, *, now: datetime) -> bool:
    """Return whether the agent has not reported for a while, or reports but has repeatedly failed to respond.

    Failures do not count if the pause after them ended early, because the NOC ended it or the agent is back.

    Separate workers handle such routers. A call to a router that drops packets occupies a worker for seconds,
    and the portal tries each such router again after its pause. Fifty of them would occupy all workers
    permanently.
    """
    silent = Q(observed__isnull=True) | Q(observed__reported_at__lt=now - FRESH)
    failing = Q(convergence__failures__gte=_FAILURES, convergence__retry_at__isnull=False)
    return Router.objects.filter(silent | failing, pk=router_id).exists()


_AHEAD = Q(observed__generation_stored__gt=F("generation"))


def _with_another_intent(routers: QuerySet[Router]) -> QuerySet[Router]:
    return _reported_after_response(
        routers.filter(
            ~Q(observed__generation_stored=F("generation")) | Q(observed__generation_stored__isnull=True),
            observed__isnull=False,
        )
    )


def _reported_after_response(routers: QuerySet[Router]) -> QuerySet[Router]:
    return routers.filter(
        Q(convergence__last_answered_at__isnull=True)
        | Q(observed__reported_at__gt=F("convergence__last_answered_at") + REPORT_TRAVELS)
    )
