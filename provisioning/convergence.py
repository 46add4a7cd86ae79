"""Convergence of one router to the state in the database: load the intent, send it, store the response.

The job is level-triggered: each run reads everything again. Two runs have the same effect as one run, and
many messages for a router have the same effect as one message.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import DatabaseError, connection, transaction
from django.db.models import Q

from portal.celery_tasks import CONVERGE_DOUBTFUL
from portal.core import clock
from portal.core.background_work import backoff
from portal.events.task_requests import resend_tasks
from portal.inventory.models import Router
from portal.vll.convergence.claims import (
    CLAIM,
    TRUST_STORED,
    Claim,
    claim_router,
    is_at_rest,
    is_claimed,
    is_unresponsive,
)
from portal.vll.convergence.requests import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    another_intent_is_wanted,
    converge_routers,
    intent_want,
)
from portal.vll.models import Attempt, Order, VllEnd
from portal.vll.operations.order_progress import answers_take, attempt_record
from portal.vll.operations.paths import probe_answers_take, stored_probe_answers
from portal.vll.operations.tombstones import stored_answers
from portal.vll.router_operations.actions import end_rebuild_failed, rebuild_begin
from portal.vll.router_operations.freeze import last_acknowledged_freeze
from portal.vll.states import TERMINAL_ORDER_STATES
from provisioning.agent_client import TOTAL_S, AgentClient, Refused, Unreachable, agent_of
from provisioning.agent_reply_decoder import Answered
from provisioning.intent_document import RouterIntent, content_sha256_of, sha256_of
from provisioning.intent_generations import (
    behind_agent_announce,
    generation_take_back,
    next_intent,
    unconfirmed_probes,
)
from provisioning.intent_rows import unconfirmed_keys

log = logging.getLogger(__name__)

Clock = Callable[[], datetime]
# The two 409 errors: the agent has a newer intent, or another intent with the number that was sent.
AGENT_IS_AHEAD = frozenset({"urn:longline:error:old-generation", "urn:longline:error:generation-reused"})
# The time limit from sending an intent until its response is stored. If the portal has not stored an answer
# within this limit, it requests the answer again later. Before the worker sends, it queries the agent's
# stored intent. The query and this limit together are shorter than the task's hard limit.
LONGEST_RUN = timedelta(seconds=TOTAL_S + 10)
# Only the newest ids are sent, because an HTTP header has room for a few thousand characters.
_MOST_IDS = 50
_CONFIRMED = (VllEnd.Status.VERIFIED, VllEnd.Status.TESTING, VllEnd.Status.REMOVED)


def converge_promptly(router_id: int, *, now: Clock = clock.now) -> bool:
    """Converge a router with ``converge_router``, except a router that needs no intent (``is_at_rest``).

    A router that probably does not respond is handed over to the workers for unresponsive routers. Each order
    sends a message, also during a long convergence, so a message for a claimed router costs only one query.
    """
    if is_claimed(router_id, now=now()) or is_at_rest(router_id, now=now()):
        return False
    if is_unresponsive(router_id, now=now()):
        resend_tasks(CONVERGE_DOUBTFUL, [(router_id,)])
        return False
    return converge_router(router_id, now=now)


def converge_router(router_id: int, *, now: Clock = clock.now) -> bool:
    """Send the router its newest intent and store the response.

    Return False if there is nothing to do: the router has no agent, is locked or frozen, is claimed by
    another worker, or is in a pause after failures.
    """
    sendable = Router.objects.exclude(agent_url="").filter(
        locked_since__isnull=True, frozen_since__isnull=True
    )
    router = sendable.filter(pk=router_id).first()
    if router is None:
        return False
    claim = claim_router(router.pk, now=now())
    if claim is None:
        return False
    try:
        with agent_of(router) as agent:
            if _agent_is_not_ahead(agent, router, claim, now):
                _send(agent, router, claim, now)
    except Exception as error:
        _give_up(claim, error, now)
        raise
    return True


def _give_up(claim: Claim, error: Exception, now: Clock) -> None:
    """Release the claim after an error in the portal, so that other workers can try soon.

    If the database cannot be written, other workers wait until the claim expires.
    """
    # The database may have restarted; a new connection may work.
    connection.close_if_unusable_or_obsolete()
    with suppress(DatabaseError):
        claim.release_failed(error=f"the portal failed: {type(error).__name__}", now=now())


def _agent_is_not_ahead(agent: AgentClient, router: Router, claim: Claim, now: Clock) -> bool:
    """Return True only if it is certain that the agent has no newer intent than the database.

    The agent is queried, except shortly after a good response. Without the query, the portal would increase
    its generation with each attempt while the agent is unreachable. Its generation could then exceed the
    agent's generation.
    """
    started_at = now()
    answered_at = claim.last_answered_at
    if claim.failures == 0 and answered_at is not None and started_at - answered_at < TRUST_STORED:
        return True
    stored = agent.stored_intent()
    if isinstance(stored, Unreachable):
        _record(router, router.generation, b"", stored, started_at, now())
        claim.release_failed(error=stored.error, now=now())
        return False
    # The worker of the previous claim may have increased the generation since the row was read.
    router.refresh_from_db(fields=["generation"])
    if stored.generation > router.generation:
        _behind(router, claim, stored=stored.generation, now=now)
        return False
    # The query may have taken nearly as long as a claim lasts.
    return claim.extend(now=now())


def _send(agent: AgentClient, router: Router, claim: Claim, now: Clock) -> None:
    started_at = now()
    intent = next_intent(router)
    document = intent.document()
    request_ids = request_ids_of(router)
    acknowledged_freeze = last_acknowledged_freeze(router)
    outcome = agent.put_intent(
        intent, document, request_ids=request_ids, acknowledged_freeze=acknowledged_freeze
    )
    times = _record(router, intent.generation, document, outcome, started_at, now())
    log.info(
        "intent sent",
        extra={
            "router": router.name,
            "generation": intent.generation,
            "outcome": type(outcome).__name__.lower(),
            "duration_s": (now() - started_at).total_seconds(),
            "request_ids": request_ids,
        },
    )
    # If the claim is lost, another worker has taken over. It has newer data than this response.
    if not claim.extend(now=now()):
        return
    match outcome:
        case Answered() as reply:
            probe_answers_take(router=router, answers=reply.ends, now=now())
            all_taken_in = answers_take(
                router=router, answers=reply.ends, now=now(), go_on=_extending_claim(claim, started_at, now)
            )
            waits = all_taken_in and any(end.status not in _CONFIRMED for end in reply.ends)
            wait = backoff(times - 1, first=FIRST_PAUSE, longest=LONGEST_PAUSE) if waits else None
            claim.release_accepted(retry_in=wait, now=now())
            _send_again_if_more_is_wanted(router, intent, all_taken_in)
        case Refused(problem=problem) if outcome.type in AGENT_IS_AHEAD:
            generation_take_back(router, generation=intent.generation)
            _behind(router, claim, stored=problem.get("held", intent.generation), now=now)
        case Refused():
            claim.release_failed(error=f"{outcome.type}: {outcome.problem.get('detail', '')}", now=now())
        case Unreachable(error):
            claim.release_failed(error=error, now=now())


def _behind(router: Router, claim: Claim, *, stored: object, now: Clock) -> None:
    behind_agent_announce(router, stored=stored, since=claim.last_answered_at, now=now())
    error = f"the agent has generation {stored}, newer than ours ({router.generation}): reconcile this router"
    claim.release_failed(error=error, now=now())


def _extending_claim(claim: Claim, started_at: datetime, now: Clock) -> Callable[[], bool]:
    """Return a function that extends the claim and returns whether to go on with a long response.

    The function returns False if another worker has the claim, or if the task would be killed soon.
    """
    extended_at = now()

    def go_on() -> bool:
        nonlocal extended_at
        at = now()
        if at - started_at > LONGEST_RUN:
            return False
        if at - extended_at < CLAIM / 3:
            return True
        extended_at = at
        return claim.extend(now=at)

    return go_on


def _send_again_if_more_is_wanted(router: Router, sent: RouterIntent, all_taken_in: bool) -> None:
    """Send a message for changes made during the claim.

    The messages of these changes had no effect, because the router was claimed.

    A change is committed before its message is sent, so a query after the release cannot miss it.
    """
    wanted = unconfirmed_keys(router) | unconfirmed_probes(router)
    with transaction.atomic():
        if not all_taken_in:
            intent_want(router.pk)
        if not wanted <= sent.end_keys() or another_intent_is_wanted(router.pk):
            converge_routers([router.pk])


def _record(
    router: Router,
    generation: int,
    document: bytes,
    outcome: Answered | Refused | Unreachable,
    started_at: datetime,
    now: datetime,
) -> int:
    """Store the result. Return the number of consecutive attempts with this result.

    ``document``: empty if no intent was sent.
    """
    match outcome:
        case Answered() as reply:
            kind, answer = Attempt.Outcome.ANSWERED, evidence_of(reply, router=router)
        case Refused(problem=problem):
            kind, answer = Attempt.Outcome.REFUSED, problem
        case Unreachable(error):
            kind, answer = Attempt.Outcome.UNREACHABLE, {"error": error}
    return attempt_record(
        router=router,
        generation=generation,
        intent_sha256=sha256_of(document) if document else "",
        content_sha256=content_sha256_of(document) if document else "",
        outcome=kind,
        answer=answer,
        started_at=started_at,
        now=now,
    )


def evidence_of(reply: Answered, *, router: Router) -> dict[str, Any]:
    """Return the response with only those ends that differ from the stored answers.

    A router with a thousand lines reports all of them each time, and the portal queries a router with a
    pending end every few seconds. Complete responses would take hundreds of megabytes per day and router.
    The member ``unchanged`` is the number of omitted ends.
    """
    stored = stored_answers(router, {end.vll for end in reply.ends}) | stored_probe_answers(router)
    changed = [
        end_document
        for end_document, end in zip(reply.document["ends"], reply.ends, strict=True)
        if stored.get((end.vll, end.side)) != (end.status, end.revision, end.reason, end.policed)
    ]
    return {**reply.document, "ends": changed, "unchanged": len(reply.ends) - len(changed)}


def request_ids_of(router: Router) -> list[str]:
    """Return at most _MOST_IDS different request ids of the open orders of this router, newest first.

    The logs of the portal and of the agent contain these ids. The ids are read from the orders and are not
    part of messages: a message may be lost or repeated, or serve several orders. An intent contains all
    orders that were accepted before it.
    """
    open_orders = Order.objects.exclude(state__in=sorted(TERMINAL_ORDER_STATES)).exclude(request_id="")
    here = Q(vll__ends__port__router=router) | Q(vll__tombstones__router=router)
    ids = open_orders.filter(here).order_by("-ordered_at").values_list("request_id", flat=True)
    return list(dict.fromkeys(ids[: 4 * _MOST_IDS]))[:_MOST_IDS]


def end_rebuild(
    vll: UUID, side: str, *, requested_at: datetime | None = None, now: Clock = clock.now
) -> None:
    """Request once that a router rebuilds the sub-interface of an end.

    An event of the agent confirms the rebuild; an event of the portal reports why it failed. After a failure,
    the request is not repeated: the operator sees the failure, and decides again.

    ``requested_at``: the time of the operator's request. None: a portal of the previous release sent the
    task and stored no request.
    """
    end = VllEnd.objects.select_related("port__router").filter(vll=vll, side=side).first()
    if end is None or not (requested_at is None or rebuild_begin(end, requested_at=requested_at)):
        return
    router = end.port.router
    if router.locked_since is not None:
        end_rebuild_failed(end=end, why="the router is locked: nothing is sent to it", now=now())
        return
    with agent_of(router) as agent:
        response = agent.rebuild(vll=vll, side=side)
    if isinstance(response, Refused):
        end_rebuild_failed(end=end, why=str(response.problem.get("detail", response.type)), now=now())
    elif isinstance(response, Unreachable):
        end_rebuild_failed(end=end, why=response.error, now=now())
