"""Convergence of one router to the state in the database: load the intent, send it, store the response.

The job is level-triggered: each run reads everything again. Two runs have the same effect as one run, and
many messages for a router have the same effect as one message.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DatabaseError, connection, transaction

from portal.core import clock
from portal.core.backoff import backoff
from portal.events.outbox import send_task
from portal.inventory.models import Router, RouterCertificate
from portal.vll.models import Attempt, RouterConvergence, VllEnd, intent_is_wanted
from portal.vll.operations import answers_take, attempt_record
from portal.vll.operations.convergence_requests import FIRST_PAUSE, LONGEST_PAUSE, intents_want
from portal.vll.operations.path_probes import probe_answers_take
from portal.vll.router_operations.freeze import last_acknowledged_freeze
from portal.vll.task_names import CONVERGE_ROUTER
from provisioning.agent_client import TOTAL_S, AgentClient, Answered, Refused, Unreachable
from provisioning.attempt_evidence import evidence_of
from provisioning.intent_document import RouterIntent, content_sha256_of, sha256_of
from provisioning.intent_generations import behind_agent_announce, generation_take_back, next_intent
from provisioning.intent_rows import unconfirmed_keys
from provisioning.order_request_ids import request_ids_of
from provisioning.path_probe_rows import unconfirmed_probes
from provisioning.router_lock import CLAIM, Claim, claim_router
from provisioning.routers_due import TRUST_STORED, is_at_rest
from provisioning.unresponsive_routers import hand_over, is_unresponsive

log = logging.getLogger(__name__)

Clock = Callable[[], datetime]
# The two 409 errors: the agent has a newer intent, or another intent with the number that was sent.
AGENT_IS_AHEAD = frozenset({"urn:longline:error:old-generation", "urn:longline:error:generation-reused"})
# The time limit from sending an intent until its response is stored. If the portal has not stored an answer
# within this limit, it requests the answer again later. Before the worker sends, it queries the agent's
# stored intent. The query and this limit together are shorter than the task's hard limit.
LONGEST_RUN = timedelta(seconds=TOTAL_S + 10)
_CONFIRMED = (VllEnd.Status.VERIFIED, VllEnd.Status.TESTING, VllEnd.Status.REMOVED)


def converge_promptly(router_id: int, *, now: Clock = clock.now) -> bool:
    """Converge a router with ``converge_router``, except a router that needs no intent (``is_at_rest``).

    A router that probably does not respond is handed over to the workers for unresponsive routers.
    """
    if is_at_rest(router_id, now=now()):
        return False
    if is_unresponsive(router_id, now=now()):
        hand_over(router_id, now=now())
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


def agent_of(router: Router) -> AgentClient:
    """Return a client for this router's agent.

    If certificates are registered for the router, the client accepts only registered certificates that are
    not revoked.
    """
    certificates = dict(
        RouterCertificate.objects.filter(router=router).values_list("fingerprint", "revoked_at")
    )
    pinned = frozenset(fingerprint for fingerprint, revoked_at in certificates.items() if revoked_at is None)
    return AgentClient(
        url=router.agent_url,
        router=router.name,
        pki=settings.LONGLINE_PKI_DIR,
        pinned=pinned if certificates else None,
    )


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
    _log_result(router, intent, outcome, request_ids, now() - started_at)
    # If the claim is lost, another worker has taken over. It has newer data than this response.
    if not claim.extend(now=now()):
        return
    match outcome:
        case Answered(reply):
            probe_answers_take(router=router, answers=reply.ends, now=now())
            all_taken_in = answers_take(
                router=router, answers=reply.ends, now=now(), go_on=_extending_claim(claim, started_at, now)
            )
            waits = all_taken_in and any(end.status not in _CONFIRMED for end in reply.ends)
            wait = backoff(times - 1, first=FIRST_PAUSE, longest=LONGEST_PAUSE) if waits else None
            claim.release_accepted(retry_in=wait, now=now())
            _send_again_if_more_is_wanted(router, intent, all_taken_in, now())
        case Refused(problem=problem) if outcome.type in AGENT_IS_AHEAD:
            generation_take_back(router, generation=intent.generation)
            _behind(router, claim, stored=problem.get("held", intent.generation), now=now)
        case Refused():
            claim.release_failed(error=f"{outcome.type}: {outcome.problem.get('detail', '')}", now=now())
        case Unreachable(error):
            claim.release_failed(error=error, now=now())


def _log_result(
    router: Router,
    intent: RouterIntent,
    outcome: Answered | Refused | Unreachable,
    request_ids: list[str],
    duration: timedelta,
) -> None:
    log.info(
        "intent sent",
        extra={
            "router": router.name,
            "generation": intent.generation,
            "outcome": type(outcome).__name__.lower(),
            "duration_s": duration.total_seconds(),
            "request_ids": request_ids,
        },
    )


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


def _send_again_if_more_is_wanted(
    router: Router, sent: RouterIntent, all_taken_in: bool, now: datetime
) -> None:
    """Send a message for changes made during the claim.

    The messages of these changes had no effect, because the router was claimed.

    A change is committed before its message is sent, so a query after the release cannot miss it.
    """
    wanted = unconfirmed_keys(router) | unconfirmed_probes(router)
    convergence = RouterConvergence.objects.filter(router=router)
    if not all_taken_in or not wanted <= sent.end_keys() or convergence.filter(intent_is_wanted()).exists():
        with transaction.atomic():
            if not all_taken_in:
                intents_want(convergence)
            send_task(CONVERGE_ROUTER, router.pk, now=now)


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
        case Answered(reply):
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
