"""Requests of users, after a restored backup, to continue from the generation of an agent."""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet

from portal.accounts.models import User
from portal.celery_tasks import ADOPT_GENERATION
from portal.events.announcements import announce
from portal.events.task_requests import resend_tasks, send_task
from portal.inventory.models import Router
from portal.vll.convergence.requests import converge_routers_on_request
from portal.vll.models import RouterConvergence

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
