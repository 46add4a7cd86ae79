"""The plan of an order pending approval: a user requests it, a worker makes it, the approver reviews it."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import models, transaction

from portal.accounts import permissions
from portal.accounts.models import User
from portal.events.outbox import send_task
from portal.vll.errors import NotForYouToDecide, PlanIsIncomplete, PlanIsStale, WrongOrderState
from portal.vll.intent_digest import intent_digests
from portal.vll.models import Order, PlanResult
from portal.vll.states import OrderState
from portal.vll.task_names import PLAN_ORDER

# This is longer than queries to two silent routers take. A plan that is not finished after this time was
# lost.
GIVEN_UP = timedelta(seconds=90)


class PlanState(models.TextChoices):
    """The progress of a plan, and whether it is still valid."""

    UNDER_WAY = "underWay"
    READY = "ready"
    STALE = "stale"
    LOST = "lost"


@transaction.atomic
def plan_request(*, user: User, order: Order, now: datetime) -> PlanResult:
    """Request a plan from both routers, or return the plan that is under way.

    Raises NotForYouToDecide, WrongOrderState.
    """
    if not permissions.may_run_the_network(user):
        raise NotForYouToDecide
    order = Order.objects.get(pk=order.pk)
    if order.state != OrderState.PENDING_APPROVAL:
        raise WrongOrderState(state=order.state, action="plan")
    newest = plan_of(order)
    if newest is not None and state_of(newest, now=now) == PlanState.UNDER_WAY:
        return newest
    plan = PlanResult.objects.create(order=order, requested_by=user.username, requested_at=now)
    send_task(PLAN_ORDER, str(plan.pk), now=now)
    return plan


def plan_finish(
    *, plan_id: UUID, routers: list[dict[str, Any]], refusal: dict[str, str] | None, now: datetime
) -> None:
    """Store the routers' answers. A plan that was made twice keeps its first answer."""
    unfinished = PlanResult.objects.filter(pk=plan_id, finished_at__isnull=True)
    unfinished.update(routers=routers, refusal=refusal, finished_at=now)


def plan_of(order: Order) -> PlanResult | None:
    """Return the newest plan of the order, or None."""
    return order.plans.order_by("-requested_at").first()


def state_of(plan: PlanResult, *, now: datetime) -> PlanState:
    """Return the state of a plan.

    A plan is stale if the lines of one of its routers have changed since. The answer of that router may then
    be outdated.
    """
    if plan.finished_at is None:
        return PlanState.UNDER_WAY if now - plan.requested_at < GIVEN_UP else PlanState.LOST
    then = {entry["router"]: entry.get("told") for entry in plan.routers}
    since = intent_digests(then, apart=plan.order.vll_id)
    return PlanState.READY if then == since else PlanState.STALE


def plan_check(order: Order, plan_id: UUID, *, now: datetime) -> None:
    """Check that this is a finished and valid plan of the order, with answers from all routers.

    Raises PlanIsStale, PlanIsIncomplete. A refusal in the plan is not checked here: the approval raises it
    again.
    """
    plan = order.plans.filter(pk=plan_id).first()
    if plan is None or state_of(plan, now=now) != PlanState.READY:
        raise PlanIsStale
    silent = [entry["name"] for entry in plan.routers if entry["error"]]
    if silent:
        raise PlanIsIncomplete(routers=", ".join(silent))
