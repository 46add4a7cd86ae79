"""Routers that need a message that they did not get: the sweeper's questions, answered from rows alone."""

from datetime import datetime, timedelta

from django.db.models import F, Q, QuerySet

from portal.inventory.models import Router
from portal.vll.models import VllEnd, VllTombstone, intent_is_wanted
from portal.vll.unconfirmed_ends import unconfirmed_ends
from provisioning.intent_rows import unconfirmed_keys
from provisioning.path_probe_rows import unconfirmed_probes
from provisioning.router_lock import is_free

# For so long after an answer we trust that the agent still holds what we sent last.
TRUST_HELD = timedelta(seconds=60)
# A report says what was true when it was sent; one that crossed our answer is no contradiction.
REPORT_TRAVELS = timedelta(seconds=5)


def routers_due(*, now: datetime) -> list[int]:
    """Unclaimed routers out of backoff that need an intent.

    They have unconfirmed ends, hold another intent than ours, or something else in their intent changed.

    Ends that were never sent are sent at once, and those that a router has not confirmed at its ``ask_at``. A
    router whose freeze ended waits until an operator acknowledges the differences, and then gets an intent.
    """
    free = (
        Router.objects.exclude(agent_url="")
        .filter(held_since__isnull=True, frozen_since__isnull=True)
        .filter(Q(convergence__isnull=True) | is_free(now=now, prefix="convergence__"))
    )
    ends = unconfirmed_ends().exclude(
        status_revision=F("vll__revision"), port__router__convergence__ask_at__gt=now
    )
    left = VllTombstone.objects.exclude(~Q(status=VllEnd.Status.UNASKED), router__convergence__ask_at__gt=now)
    wanting = Q(pk__in=ends.values("port__router")) | Q(pk__in=left.values("router"))
    return sorted(
        set(free.filter(wanting).values_list("pk", flat=True))
        | set(free.filter(intent_is_wanted("convergence__")).values_list("pk", flat=True))
        | set(_told_after_answer(free.filter(observed__freeze__over=True)).values_list("pk", flat=True))
        | set(_holding_another(free).filter(generation__gt=0).exclude(_AHEAD).values_list("pk", flat=True))
    )


def routers_behind_agent() -> list[Router]:
    """Routers whose agent reports a newer intent than the database ever sent: a restored backup.

    A backup from before the first intent counts from 0, and is behind as well.
    """
    return list(
        _holding_another(Router.objects.exclude(agent_url=""))
        .filter(_AHEAD)
        .select_related("observed", "convergence")
    )


def is_at_rest(router_id: int, *, now: datetime) -> bool:
    """Whether this router needs no intent: all that its orders want was confirmed a moment ago.

    Each order sends a message, and the first one is as good as all: the intent it leads to has every order
    that was accepted by then. Without this check the others would send the same intent again.
    """
    answered = Router.objects.filter(
        pk=router_id,
        convergence__failures=0,
        convergence__last_answered_at__gt=now - TRUST_HELD,
    )
    answered = answered.exclude(intent_is_wanted("convergence__"))
    router = answered.exclude(pk__in=_holding_another(answered)).first()
    return router is not None and not unconfirmed_keys(router) and not unconfirmed_probes(router)


_AHEAD = Q(observed__generation_held__gt=F("generation"))


def _holding_another(routers: QuerySet[Router]) -> QuerySet[Router]:
    return _told_after_answer(
        routers.filter(
            ~Q(observed__generation_held=F("generation")) | Q(observed__generation_held__isnull=True),
            observed__isnull=False,
        )
    )


def _told_after_answer(routers: QuerySet[Router]) -> QuerySet[Router]:
    return routers.filter(
        Q(convergence__last_answered_at__isnull=True)
        | Q(observed__reported_at__gt=F("convergence__last_answered_at") + REPORT_TRAVELS)
    )
