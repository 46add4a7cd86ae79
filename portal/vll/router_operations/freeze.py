"""Freeze a router: its agent observes and reports but changes nothing, and orders wait.

The agent keeps the freeze even while the portal is away. An operator on the router can freeze it as well. If
others changed something during the freeze, the portal repairs nothing before a user has reviewed the
differences.
"""

import logging
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from portal.accounts.models import User
from portal.core.clock import to_ms, to_time
from portal.events.announcements import announce
from portal.inventory.models import ObservedRouter, Router, RouterFreeze
from portal.inventory.models.router import LONGEST_REASON
from portal.inventory.reported_observation import FreezeReport
from portal.vll.convergence.requests import converge_routers_on_request
from portal.vll.errors import (
    FreezeNotOver,
    FreezeTooLong,
    LineBeingTested,
    RouterCannotBeFrozen,
    RouterIsNotFrozen,
)
from portal.vll.models import ActivationTest
from portal.vll.states import OrderAction

log = logging.getLogger(__name__)

LONGEST_FREEZE = timedelta(days=30)


@transaction.atomic
def router_freeze(*, router: Router, user: User, now: datetime, reason: str, until: datetime) -> RouterFreeze:
    """Freeze the router from its agent's next report on, or change the existing freeze.

    The agent completes the work that is under way. Raises FreezeTooLong, RouterCannotBeFrozen,
    LineBeingTested.
    """
    locked = _lock(router)
    if not now < until <= now + LONGEST_FREEZE:
        raise FreezeTooLong(days=LONGEST_FREEZE.days)
    if not ObservedRouter.objects.filter(router=locked, freezes=True).exists():
        raise RouterCannotBeFrozen(router=locked.name)
    if tested := _tested_line(locked):
        raise LineBeingTested(router=locked.name, line=tested)
    existing = _portals(locked)
    if existing is not None and not existing.is_ending(now):
        existing.reason, existing.until, existing.by = reason, until, user.username
        existing.save(update_fields=["reason", "until", "by"])
        _began(existing, actor=user.username, now=now)
        return existing
    if existing is not None:
        # The differences of this freeze are reviewed together with the differences of the next freeze.
        _set_closed(existing, acknowledged_by="", now=now)
    freeze = RouterFreeze.objects.create(
        router=locked, reason=reason, by=user.username, since=now, until=until
    )
    _began(freeze, actor=user.username, now=now)
    return freeze


@transaction.atomic
def router_unfreeze(*, router: Router, user: User, now: datetime) -> None:
    """End the portal's freeze before its time.

    A freeze by an operator on the router can only end on the router. Raises RouterIsNotFrozen.
    """
    locked = _lock(router)
    freeze = _portals(locked)
    if freeze is None or freeze.ended_at is not None:
        raise RouterIsNotFrozen(router=locked.name)
    if freeze.end_requested_at is not None:
        return
    freeze.end_requested_at = now
    freeze.save(update_fields=["end_requested_at"])
    announce("router.freeze_ended", now=now, router_id=locked.pk, actor=user.username)
    if freeze.kept_since is None:
        # The agent has not confirmed the freeze. If it did receive the freeze, freeze_reported reopens it.
        _close(freeze, acknowledged_by="", now=now)


@transaction.atomic
def freeze_acknowledge(*, router: Router, user: User, now: datetime) -> None:
    """Record that a user has reviewed the differences after a freeze.

    The portal then converges the router again. For a silent router, this is possible if the time of the
    freeze is over or its end was requested. Raises RouterIsNotFrozen, FreezeNotOver.
    """
    locked = _lock(router)
    existing = list(_open(locked))
    if not existing:
        raise RouterIsNotFrozen(router=locked.name)
    if not all(freeze.is_ending(now) for freeze in existing):
        raise FreezeNotOver(router=locked.name)
    for freeze in existing:
        _close(freeze, acknowledged_by=user.username, now=now)
    announce("router.freeze_looked", now=now, router_id=locked.pk, actor=user.username)


@transaction.atomic
def freeze_reported(*, router: Router, report: FreezeReport | None, now: datetime) -> None:
    """Process the freeze in an agent's report.

    ``report``: a freeze by the portal or by an operator on the router, which may have ended; None: no freeze.
    """
    locked = _lock(router)
    if report is not None:
        _kept(locked, report, now)
    for freeze in _open(locked):
        if report is not None and str(freeze.pk) == report.id:
            if report.over and freeze.ended_at is None:
                _ended(freeze, now=now)
        elif freeze.by == "" or freeze.is_ending(now):
            # The agent no longer keeps this freeze, or did not receive it in time. Any other freeze stays
            # open, and the agent gets it again.
            _close(freeze, acknowledged_by="", now=now)


def _kept(router: Router, report: FreezeReport, now: datetime) -> None:
    """Keep the reported freeze open until a user has reviewed its differences."""
    freeze = RouterFreeze.objects.filter(pk=report.id).first()
    if freeze is None:
        # A freeze of the portal that a restored database does not know is treated like a freeze that an
        # operator began on the router.
        since = min(now, to_time(report.since_ms))
        freeze = RouterFreeze.objects.create(
            pk=report.id,
            router=router,
            reason=report.reason[:LONGEST_REASON],
            since=since,
            until=max(to_time(report.until_ms), since + timedelta(seconds=1)),
            kept_since=now,
        )
        _began(freeze, actor="", now=now)
    elif freeze.router_id != router.pk:
        # This agent's folder is a copy of another router's folder, or was stolen. An agent must not change
        # the freeze of another router.
        log.warning("%s reports the freeze %s of another router", router, report.id)
    elif freeze.closed_at is None:
        if freeze.kept_since is None:
            freeze.kept_since = now
            freeze.save(update_fields=["kept_since"])
    elif not (report.over and freeze.acknowledged_by) and not _open(router).exists():
        # The portal closed it because it seemed unknown to the agent, or a user reviewed it too early.
        freeze.kept_since, freeze.ended_at, freeze.closed_at, freeze.acknowledged_by = now, None, None, ""
        freeze.save(update_fields=["kept_since", "ended_at", "closed_at", "acknowledged_by"])
        _began(freeze, actor="", now=now)


def freeze_wanted(router: Router, *, now: datetime) -> dict[str, Any] | None:
    """Return the freeze for the response to each report of the agent: the portal's freeze, or None."""
    if router.frozen_since is None:
        return None
    freeze = _portals(router)
    if freeze is None or freeze.is_ending(now):
        return None
    return {"id": str(freeze.pk), "reason": freeze.reason, "until_ms": to_ms(freeze.until)}


def last_acknowledged_freeze(router: Router) -> str:
    """Return the id of the last freeze whose differences a user has reviewed; "" for none."""
    acknowledged = RouterFreeze.objects.filter(router=router, closed_at__isnull=False).exclude(
        acknowledged_by=""
    )
    last = acknowledged.order_by("-closed_at").values_list("pk", flat=True).first()
    return str(last or "")


def freeze_of(router: Router) -> RouterFreeze | None:
    """Return the freeze in effect. A freeze by an operator on the router comes before the portal's.

    Each freeze stays in effect until it is closed.
    """
    return _open(router).order_by("by").first() if router.frozen_since else None


def _lock(router: Router) -> Router:
    return Router.objects.select_for_update(no_key=True).get(pk=router.pk)


def _open(router: Router) -> QuerySet[RouterFreeze]:
    return RouterFreeze.objects.filter(router=router, closed_at__isnull=True)


def _portals(router: Router) -> RouterFreeze | None:
    """Return the portal's open freeze. ``by`` is empty for a freeze by an operator on the router."""
    return _open(router).exclude(by="").first()


def _began(freeze: RouterFreeze, *, actor: str, now: datetime) -> None:
    Router.objects.filter(pk=freeze.router_id, frozen_since__isnull=True).update(frozen_since=now)
    data = {"reason": freeze.reason, "until": freeze.until.isoformat()}
    announce("router.frozen", now=now, router_id=freeze.router_id, actor=actor, data=data)


def _ended(freeze: RouterFreeze, *, now: datetime) -> None:
    freeze.ended_at = now
    freeze.save(update_fields=["ended_at"])
    if freeze.end_requested_at is None:
        announce("router.freeze_ended", now=now, router_id=freeze.router_id, actor="")


def _set_closed(freeze: RouterFreeze, *, acknowledged_by: str, now: datetime) -> None:
    freeze.ended_at = freeze.ended_at or now
    freeze.closed_at, freeze.acknowledged_by = now, acknowledged_by
    freeze.save(update_fields=["ended_at", "closed_at", "acknowledged_by"])


def _close(freeze: RouterFreeze, *, acknowledged_by: str, now: datetime) -> None:
    _set_closed(freeze, acknowledged_by=acknowledged_by, now=now)
    if not _open(freeze.router).exists():
        Router.objects.filter(pk=freeze.router_id).update(frozen_since=None)
        converge_routers_on_request([freeze.router_id])


def _tested_line(router: Router) -> str | None:
    """Return the name of a line in service whose test uses this router, or None."""
    tests = ActivationTest.objects.filter(state=ActivationTest.State.WAITING, order__action=OrderAction.TEST)
    test = tests.filter(vll__ends__port__router=router).select_related("vll").first()
    return None if test is None else str(test.vll)
