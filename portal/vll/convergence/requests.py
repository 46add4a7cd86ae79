"""Requests to converge routers, and to continue from an agent's generation after a restored backup."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import DateTimeField, F, Q, QuerySet, Value
from django.db.models.functions import Greatest, Least

from portal.accounts.models import User
from portal.celery_tasks import ADOPT_GENERATION, CONVERGE_ROUTER
from portal.events.announcements import announce
from portal.events.task_requests import resend_tasks, send_task, send_tasks
from portal.inventory.models import Router
from portal.vll.models import RouterConvergence, Vll

# The pause before the portal queries a router again that has not reached the wanted state. The pause doubles
# with each equal answer to an equal intent, up to LONGEST_PAUSE.
FIRST_PAUSE = timedelta(seconds=10)
LONGEST_PAUSE = timedelta(minutes=5)


def converge_routers_of(vll: Vll) -> None:
    """Request convergence of both routers now.

    If a message is lost, the sweeper finds the unconfirmed ends and sends a message again.
    """
    converge_routers(vll.ends.values_list("port__router_id", flat=True))


def converge_routers(router_ids: Iterable[int]) -> None:
    """Request convergence of these routers now."""
    send_tasks(CONVERGE_ROUTER, [(router_id,) for router_id in sorted(set(router_ids))])


def intents_want(rows: QuerySet[RouterConvergence], **also: Any) -> int:
    """Mark that these routers need a new intent, even if one is being sent now. Return their number.

    Call it in the transaction that changes the content of the intent. ``also``: other columns to write.
    """
    return rows.update(wanted=F("wanted") + 1, intent_requested=True, **also)


def intent_want(router_id: int, *, unless_wanted: bool = False) -> bool:
    """Mark that this router needs a new intent; return whether a row was marked.

    ``unless_wanted``: leave the row as it is if an intent is already wanted.
    """
    rows = RouterConvergence.objects.filter(router=router_id)
    return bool(intents_want(rows.exclude(intent_is_wanted()) if unless_wanted else rows))


def another_intent_is_wanted(router_id: int) -> bool:
    """Return whether this router must get an intent although no order requires it."""
    return RouterConvergence.objects.filter(intent_is_wanted(), router=router_id).exists()


def intents_renew(router_ids: Iterable[int]) -> None:
    """Send new intents to these routers: the content changed without a new revision of a line."""
    routers = sorted(set(router_ids))
    intents_want(_locked(routers))
    converge_routers(routers)


def converge_routers_on_request(router_ids: Iterable[int]) -> None:
    """Converge these routers now, because a user requests it, and skip all pauses after failures."""
    routers = sorted(set(router_ids))
    intents_want(_locked(routers), failures=0, retry_at=None, next_query_at=None, changed=True)
    converge_routers(routers)


def _locked(routers: list[int]) -> QuerySet[RouterConvergence]:
    """Lock the rows in the order of their routers (ADR 76). An UPDATE alone has no defined order."""
    rows = RouterConvergence.objects.filter(router__in=routers)
    if len(routers) > 1:
        list(rows.order_by("router").select_for_update(no_key=True).values_list("pk"))
    return rows


def router_changed(router_id: int, *, now: datetime) -> bool:
    """Record a change that a router's unconfirmed ends may wait for; return whether to query the router now.

    The portal waits for FIRST_PAUSE after the router's last answer, so that frequent changes overload neither
    the portal nor the router. The sweeper sends a query that is due later.
    """
    waiting = RouterConvergence.objects.filter(router=router_id, next_query_at__isnull=False)
    soonest = Greatest(Value(now), F("last_answered_at") + FIRST_PAUSE, output_field=DateTimeField())
    waiting.update(changed=True, next_query_at=Least(F("next_query_at"), soonest))
    return waiting.filter(next_query_at__lte=now).exists()


def intent_is_wanted(prefix: str = "") -> Q:
    """Select RouterConvergence rows whose router must get an intent although no order requires it.

    ``prefix``: the look-up path from the queried model to these rows, including the last ``__``.
    """
    newer = Q(**{f"{prefix}wanted__gt": F(f"{prefix}answered")})
    return newer | Q(**{f"{prefix}intent_requested": True})


def waits_for_query(router_id: int) -> bool:
    """Return whether the portal waits before it queries this router again about unconfirmed ends."""
    return RouterConvergence.objects.filter(router=router_id, next_query_at__isnull=False).exists()


def pause_end(router_id: int, *, now: datetime) -> None:
    """End the pause of a router that is back."""
    RouterConvergence.objects.filter(retry_at__gt=now, router=router_id).update(retry_at=None)


# How long a requested reconciliation stays valid.
RECONCILE_WITHIN = timedelta(minutes=15)


@transaction.atomic
def generation_adopt_request(*, router: Router, user: User, now: datetime) -> None:
    """Request that the router's generation continues from the agent's number.

    The state in the database becomes the router's wanted state. The request is kept until it is carried out,
    for RECONCILE_WITHIN at most. If its task is lost or cannot reach the agent, the task is sent again.
    """
    announce("router.reconcile_asked", now=now, router_id=router.pk, actor=user.username)
    RouterConvergence.objects.update_or_create(
        router=router,
        defaults={
            "reconcile_requested_at": now,
            "reconcile_requested_by": user.username,
        },
    )
    send_task(ADOPT_GENERATION, router.pk, user.username, now.isoformat())


def reconciliations_resend(*, now: datetime) -> int:
    """Send a task again for each reconciliation that is still pending; return how many.

    A request that is too old is dropped, because the differences may have changed since the user read them.
    The alarm of the router stays.
    """
    requested = RouterConvergence.objects.filter(reconcile_requested_at__isnull=False)
    requested.filter(reconcile_requested_at__lt=now - RECONCILE_WITHIN).update(reconcile_requested_at=None)
    rows = requested.order_by("router").values_list(
        "router", "reconcile_requested_by", "reconcile_requested_at"
    )
    calls = [(router, by, requested_at.isoformat()) for router, by, requested_at in rows if requested_at]
    return len(resend_tasks(ADOPT_GENERATION, calls))


def reconciliation_is_pending(router_id: int, *, requested_at: datetime | None, now: datetime) -> bool:
    """Return whether the request of ``requested_at`` still waits. Drop it if it is too old.

    ``requested_at`` None: a portal of the previous release sent the task and stored no request.
    """
    if requested_at is None:
        return True
    requested = _requested(router_id, requested_at)
    requested.filter(reconcile_requested_at__lt=now - RECONCILE_WITHIN).update(reconcile_requested_at=None)
    return requested.exists()


def reconciliation_drop(router_id: int, *, requested_at: datetime | None) -> None:
    """Drop a request that its user may no longer make."""
    _requested(router_id, requested_at).update(reconcile_requested_at=None)


@transaction.atomic
def generation_count_from(
    *, router: Router, stored: int, actor: str, now: datetime, requested_at: datetime | None = None
) -> int | None:
    """Continue from the generation ``stored`` of the agent; return the router's new generation.

    The next intent enforces the state of the database. So before the call, somebody must have checked the
    agent's objects that the database does not contain. Lines that the intent does not name keep forwarding
    and are quarantined. Return None if the request of ``requested_at`` is over.
    """
    locked = Router.objects.select_for_update(no_key=True).get(pk=router.pk)
    requested = RouterConvergence.objects.filter(router=locked, reconcile_requested_at=requested_at)
    if requested_at is not None and not requested.exists():
        return None
    if stored > locked.generation:
        Router.objects.filter(pk=locked.pk).update(generation=stored)
        announce(
            "router.reconciled",
            now=now,
            router_id=locked.pk,
            actor=actor,
            data={"from": locked.generation, "to": stored},
        )
    RouterConvergence.objects.filter(router=locked).update(last_error="", reconcile_requested_at=None)
    converge_routers_on_request([locked.pk])
    return max(stored, locked.generation)


def _requested(router_id: int, requested_at: datetime | None) -> QuerySet[RouterConvergence]:
    rows = RouterConvergence.objects.filter(router=router_id)
    return rows if requested_at is None else rows.filter(reconcile_requested_at=requested_at)
