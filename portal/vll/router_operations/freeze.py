"""Freezing a router: its agent reads, reports and changes nothing, and what is ordered waits.

The agent keeps it by itself, also while the portal is away. Somebody on the router can freeze it as well.
When it ends, nothing is repaired before somebody has looked at what others changed meanwhile, if they did.
"""

import logging
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from portal.accounts.models import User
from portal.core.unix_time import to_ms, to_time
from portal.events.outbox import announce
from portal.inventory.models import ObservedRouter, Router, RouterFreeze
from portal.inventory.models.router_freeze import LONGEST_REASON
from portal.inventory.reported_observation import FreezeReport
from portal.vll.errors import (
    FreezeNotOver,
    FreezeTooLong,
    LineBeingTested,
    RouterCannotBeFrozen,
    RouterIsNotFrozen,
)
from portal.vll.models import LineTest
from portal.vll.operations.convergence_requests import converge_routers_anew
from portal.vll.states import OrderAction

log = logging.getLogger(__name__)

LONGEST_FREEZE = timedelta(days=30)


@transaction.atomic
def router_freeze(*, router: Router, user: User, now: datetime, reason: str, until: datetime) -> RouterFreeze:
    """Freeze the router from its agent's next report on; or give the freeze that stands another end.

    What is under way there is done to its end. Raises FreezeTooLong, RouterCannotBeFrozen, LineBeingTested.
    """
    locked = _lock(router)
    if not now < until <= now + LONGEST_FREEZE:
        raise FreezeTooLong(days=LONGEST_FREEZE.days)
    if not ObservedRouter.objects.filter(router=locked, freezes=True).exists():
        raise RouterCannotBeFrozen(router=locked.name)
    if tested := _tested_line(locked):
        raise LineBeingTested(router=locked.name, line=tested)
    standing = _portals(locked)
    if standing is not None and not standing.is_ending(now):
        standing.reason, standing.until, standing.by = reason, until, user.username
        standing.save(update_fields=["reason", "until", "by"])
        _began(standing, actor=user.username, now=now)
        return standing
    if standing is not None:
        # What it left is looked at with what the next one leaves.
        _set_closed(standing, looked_by="", now=now)
    freeze = RouterFreeze.objects.create(
        router=locked, reason=reason, by=user.username, since=now, until=until
    )
    _began(freeze, actor=user.username, now=now)
    return freeze


@transaction.atomic
def router_unfreeze(*, router: Router, user: User, now: datetime) -> None:
    """End the portal's freeze before its time; what an operator on the router began, ends there.

    Raises RouterIsNotFrozen.
    """
    locked = _lock(router)
    freeze = _portals(locked)
    if freeze is None or freeze.ended_at is not None:
        raise RouterIsNotFrozen(router=locked.name)
    if freeze.end_asked_at is not None:
        return
    freeze.end_asked_at = now
    freeze.save(update_fields=["end_asked_at"])
    announce("router.freeze_ended", now=now, router_id=locked.pk, actor=user.username)
    if freeze.kept_since is None:
        # Its agent has not said that it heard of it; freeze_reported takes it up again where it did.
        _close(freeze, looked_by="", now=now)


@transaction.atomic
def freeze_looked(*, router: Router, user: User, now: datetime) -> None:
    """Somebody has looked at what the freeze left: the router is brought to what is wanted again.

    Of a router that is silent it can be said when the freeze's time is up, or its end was asked for.
    Raises RouterIsNotFrozen, FreezeNotOver.
    """
    locked = _lock(router)
    standing = list(_open(locked))
    if not standing:
        raise RouterIsNotFrozen(router=locked.name)
    if not all(freeze.is_ending(now) for freeze in standing):
        raise FreezeNotOver(router=locked.name)
    for freeze in standing:
        _close(freeze, looked_by=user.username, now=now)
    announce("router.freeze_looked", now=now, router_id=locked.pk, actor=user.username)


@transaction.atomic
def freeze_reported(*, router: Router, told: FreezeReport | None, now: datetime) -> None:
    """Take in what the agent says of a freeze: its own, that it keeps ours, that one is over or gone."""
    locked = _lock(router)
    if told is not None:
        _kept(locked, told, now)
    for freeze in _open(locked):
        if told is not None and str(freeze.pk) == told.id:
            if told.over and freeze.ended_at is None:
                _ended(freeze, now=now)
        elif freeze.by == "" or freeze.is_ending(now):
            # Its agent keeps it no more, or never heard of it in time; any other it is told of again.
            _close(freeze, looked_by="", now=now)


def _kept(router: Router, told: FreezeReport, now: datetime) -> None:
    """Have the freeze that the agent tells of stand, unless somebody has looked what it left."""
    freeze = RouterFreeze.objects.filter(pk=told.id).first()
    if freeze is None:
        # That of a portal whose database was restored later is as good as one of the router's own.
        since = min(now, to_time(told.since_ms))
        freeze = RouterFreeze.objects.create(
            pk=told.id,
            router=router,
            reason=told.reason[:LONGEST_REASON],
            since=since,
            until=max(to_time(told.until_ms), since + timedelta(seconds=1)),
            kept_since=now,
        )
        _began(freeze, actor="", now=now)
    elif freeze.router_id != router.pk:
        # Its agent's folder is a copy of that router's, or in wrong hands: no agent speaks for another.
        log.warning("%s tells of the freeze %s, which is another router's", router, told.id)
    elif freeze.closed_at is None:
        if freeze.kept_since is None:
            freeze.kept_since = now
            freeze.save(update_fields=["kept_since"])
    elif not (told.over and freeze.looked_by) and not _open(router).exists():
        # It was taken for unheard of, or looked at too early.
        freeze.kept_since, freeze.ended_at, freeze.closed_at, freeze.looked_by = now, None, None, ""
        freeze.save(update_fields=["kept_since", "ended_at", "closed_at", "looked_by"])
        _began(freeze, actor="", now=now)


def freeze_wanted(router: Router, *, now: datetime) -> dict[str, Any] | None:
    """What the agent is told in answer to each report: the portal's freeze, None for none."""
    if router.frozen_since is None:
        return None
    freeze = _portals(router)
    if freeze is None or freeze.is_ending(now):
        return None
    return {"id": str(freeze.pk), "reason": freeze.reason, "until_ms": to_ms(freeze.until)}


def freeze_looked_last(router: Router) -> str:
    """The id of the last freeze that somebody has looked what it left; "" for none."""
    looked = RouterFreeze.objects.filter(router=router, closed_at__isnull=False).exclude(looked_by="")
    last = looked.order_by("-closed_at").values_list("pk", flat=True).first()
    return str(last or "")


def freeze_of(router: Router) -> RouterFreeze | None:
    """The one that stands: the router's own before the portal's, and either until somebody has looked."""
    return _open(router).order_by("by").first() if router.frozen_since else None


def _lock(router: Router) -> Router:
    return Router.objects.select_for_update(no_key=True).get(pk=router.pk)


def _open(router: Router) -> QuerySet[RouterFreeze]:
    return RouterFreeze.objects.filter(router=router, closed_at__isnull=True)


def _portals(router: Router) -> RouterFreeze | None:
    """That of an operator on the router has no name."""
    return _open(router).exclude(by="").first()


def _began(freeze: RouterFreeze, *, actor: str, now: datetime) -> None:
    Router.objects.filter(pk=freeze.router_id, frozen_since__isnull=True).update(frozen_since=now)
    data = {"reason": freeze.reason, "until": freeze.until.isoformat()}
    announce("router.frozen", now=now, router_id=freeze.router_id, actor=actor, data=data)


def _ended(freeze: RouterFreeze, *, now: datetime) -> None:
    freeze.ended_at = now
    freeze.save(update_fields=["ended_at"])
    if freeze.end_asked_at is None:
        announce("router.freeze_ended", now=now, router_id=freeze.router_id, actor="")


def _set_closed(freeze: RouterFreeze, *, looked_by: str, now: datetime) -> None:
    freeze.ended_at = freeze.ended_at or now
    freeze.closed_at, freeze.looked_by = now, looked_by
    freeze.save(update_fields=["ended_at", "closed_at", "looked_by"])


def _close(freeze: RouterFreeze, *, looked_by: str, now: datetime) -> None:
    _set_closed(freeze, looked_by=looked_by, now=now)
    if not _open(freeze.router).exists():
        Router.objects.filter(pk=freeze.router_id).update(frozen_since=None)
        converge_routers_anew([freeze.router_id], now=now)


def _tested_line(router: Router) -> str | None:
    """How a line in service is called that is being tested through this router; None for none."""
    tests = LineTest.objects.filter(state=LineTest.State.WAITING, order__action=OrderAction.TEST)
    test = tests.filter(vll__ends__port__router=router).select_related("vll").first()
    return None if test is None else str(test.vll)
