"""The routers that need an intent, and the claim by which one worker at a time sends it.

A worker claims a router by compare-and-swap. It never has the router for longer than a claim lasts.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.db.models import Case, F, Q, QuerySet, Value, When

from portal.celery_tasks import CONVERGE_ROUTER
from portal.core.background_work import backoff
from portal.events.task_requests import resend_tasks
from portal.inventory.models import FRESH, Router
from portal.vll.convergence.requests import FIRST_PAUSE, intent_is_wanted
from portal.vll.models import RouterConvergence, VllEnd, VllTombstone
from portal.vll.operations.paths import probes_on
from portal.vll.queries import unconfirmed_ends

# Longer than one exchange with an agent may take (agent_client.TOTAL_S). Short enough that, after a worker
# was killed, the sweeper sends its router's message again within 75 s.
CLAIM = timedelta(seconds=45)
FIRST_RETRY = timedelta(seconds=1)
LONGEST_RETRY = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to work on a router. ``failures``: consecutive failed attempts before this claim.

    ``wanted``: the value of RouterConvergence.wanted at the claim. An intent made under this claim contains
    at least the changes that this number counts.
    """

    router_id: int
    token: UUID
    failures: int
    last_answered_at: datetime | None
    wanted: int

    def extend(self, *, now: datetime) -> bool:
        """Return whether the claim is still valid; if so, renew its full duration from ``now``."""
        return bool(self._mine().update(claimed_until=now + CLAIM))

    def release_accepted(self, *, retry_in: timedelta | None, now: datetime) -> None:
        """Release the claim after the agent accepted an intent.

        ``retry_in``: None if the agent has confirmed all ends. If a change was requested during the claim,
        the retry is sooner, because the intent may not contain the change.
        """
        next_query_at = retry_in and Case(
            When(changed=True, then=Value(now + FIRST_PAUSE)),
            default=Value(now + retry_in),
        )
        self._mine().update(
            claim=None,
            claimed_until=None,
            failures=0,
            retry_at=None,
            last_error="",
            last_answered_at=now,
            answered=self.wanted,
            # Changes requested after the claim may be missing from the accepted intent.
            intent_requested=Case(When(wanted=self.wanted, then=Value(False)), default=F("intent_requested")),
            next_query_at=next_query_at,
        )

    def release_failed(self, *, error: str, now: datetime) -> None:
        """Release the claim after a refusal, or if there was no usable response.

        The portal then waits before the next attempt, longer after each failure.
        """
        self._mine().update(
            claim=None,
            claimed_until=None,
            failures=F("failures") + 1,
            retry_at=now + backoff(self.failures, first=FIRST_RETRY, longest=LONGEST_RETRY),
            last_error=error,
        )

    def _mine(self) -> QuerySet[RouterConvergence]:
        return RouterConvergence.objects.filter(router_id=self.router_id, claim=self.token)


def is_free(*, now: datetime, prefix: str = "") -> Q:
    """Return a filter for RouterConvergence rows that may be claimed.

    ``prefix``: the look-up path to these rows, including the last ``__``.
    """
    return (Q(**{f"{prefix}claimed_until": None}) | Q(**{f"{prefix}claimed_until__lte": now})) & (
        Q(**{f"{prefix}retry_at": None}) | Q(**{f"{prefix}retry_at__lte": now})
    )


def is_claimed(router_id: int, *, now: datetime) -> bool:
    """Return whether a worker has this router. It sends another message after an intent if more is wanted.

    If the worker fails, the sweeper sends it.
    """
    return RouterConvergence.objects.filter(router=router_id, claimed_until__gt=now).exists()


def claim_router(router_id: int, *, now: datetime) -> Claim | None:
    """Claim the router. Return None if another worker has claimed it, or if its pause is not over."""
    RouterConvergence.objects.bulk_create([RouterConvergence(router_id=router_id)], ignore_conflicts=True)
    token = uuid4()
    row = RouterConvergence.objects.filter(router_id=router_id)
    if not row.filter(is_free(now=now)).update(claim=token, claimed_until=now + CLAIM, changed=False):
        return None
    mine = row.filter(claim=token).first()
    if mine is None:
        return None
    return Claim(router_id, token, mine.failures, mine.last_answered_at, mine.wanted)


# For this time after a response, the portal assumes that the agent still has the portal's last intent.
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
