"""Queries of routers whose intent has not been delivered, for the sweeper. They read only rows."""

from datetime import datetime, timedelta

from django.db.models import F, Q, QuerySet

from portal.inventory.models import Router
from portal.vll.models import VllEnd, VllTombstone, intent_is_wanted
from portal.vll.unconfirmed_ends import unconfirmed_ends
from provisioning.intent_rows import unconfirmed_keys
from provisioning.path_probe_rows import unconfirmed_probes
from provisioning.router_lock import is_free

# For this time after a response, the portal assumes that the agent still has the intent that the portal sent
# last.
TRUST_STORED = timedelta(seconds=60)
# A report describes the state when the agent sent it. If the agent sent a response later, the report does
# not contradict this response.
REPORT_TRAVELS = timedelta(seconds=5)


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
    return router is not None and not unconfirmed_keys(router) and not unconfirmed_probes(router)


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
