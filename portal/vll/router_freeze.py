"""Freezing a router: its agent reads, reports and changes nothing, and what is ordered waits.

The agent keeps it by itself, also while the portal is away. Somebody on the router can freeze it as well.
When it ends, nothing is repaired before somebody has looked at what others changed meanwhile, if they did.
"""

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from portal.accounts.models import User
from portal.core.unix_time import to_ms, to_time
from portal.events.outbox import announce
from portal.inventory.models import ObservedRouter, Router, RouterFreeze
from portal.inventory.observation_report import FreezeReport
from portal.vll.errors import (
    FreezeNotOver,
    FreezeTooLong,
    RouterCannotBeFrozen,
    RouterIsFrozen,
    RouterIsNotFrozen,
)
from portal.vll.operations.convergence_requests import converge_routers_anew

LONGEST_FREEZE = timedelta(days=30)


@transaction.atomic
def router_freeze(*, router: Router, user: User, now: datetime, reason: str, until: datetime) -> RouterFreeze:
    """Freeze the router from its agent's next report on. What is under way there is done to its end.

    Raises FreezeTooLong, RouterCannotBeFrozen, RouterIsFrozen.
    """
    locked = _lock(router)
    if not now < until <= now + LONGEST_FREEZE:
        raise FreezeTooLong(days=LONGEST_FREEZE.days)
    if not ObservedRouter.objects.filter(router=locked, freezes=True).exists():
        raise RouterCannotBeFrozen(router=locked.name)
    if standing := _open(locked).exclude(by="").first():
        raise RouterIsFrozen(router=locked.name, reason=standing.reason, until=standing.until)
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
    freeze = _open(locked).filter(ended_at__isnull=True).exclude(by="").first()
    if freeze is None:
        raise RouterIsNotFrozen(router=locked.name)
    _ended(freeze, actor=user.username, now=now)
    if freeze.kept_since is None:
        # Its agent never heard of it.
        _close(freeze, looked_by="", now=now)


@transaction.atomic
def freeze_looked(*, router: Router, user: User, now: datetime) -> None:
    """Somebody has looked at what the freeze left: the router is brought to what is wanted again.

    Raises RouterIsNotFrozen, FreezeNotOver.
    """
    locked = _lock(router)
    standing = list(_open(locked))
    if not standing:
        raise RouterIsNotFrozen(router=locked.name)
    if not all(freeze.ended_at for freeze in standing):
        raise FreezeNotOver(router=locked.name)
    for freeze in standing:
        _close(freeze, looked_by=user.username, now=now)
    announce("router.freeze_looked", now=now, router_id=locked.pk, actor=user.username)


@transaction.atomic
def freeze_reported(*, router: Router, told: FreezeReport | None, now: datetime) -> None:
    """Take in what the agent says of a freeze: its own, that it keeps ours, that one is over or gone."""
    locked = _lock(router)
    if told is not None and not RouterFreeze.objects.filter(pk=told.id).exists():
        # That of a portal whose database was restored later is as good as one of the router's own.
        freeze = RouterFreeze.objects.create(
            pk=told.id,
            router=locked,
            reason=told.reason[:200],
            since=min(now, to_time(told.since_ms)),
            until=max(to_time(told.until_ms), min(now, to_time(told.since_ms)) + timedelta(seconds=1)),
            kept_since=now,
        )
        _began(freeze, actor="", now=now)
    for freeze in _open(locked):
        if told is None or str(freeze.pk) != told.id:
            # Its agent keeps it no more, or never heard of it in time.
            if freeze.kept_since is not None or freeze.until <= now:
                _close(freeze, looked_by="", now=now)
            continue
        if freeze.kept_since is None:
            RouterFreeze.objects.filter(pk=freeze.pk).update(kept_since=now)
        if told.over and freeze.ended_at is None:
            _ended(freeze, actor="", now=now)


def freeze_wanted(router: Router, *, now: datetime) -> dict[str, Any] | None:
    """What the agent is told in answer to each report: the portal's freeze, None for none."""
    if router.frozen_since is None:
        return None
    freeze = _open(router).filter(ended_at__isnull=True, until__gt=now).exclude(by="").first()
    if freeze is None:
        return None
    return {"id": str(freeze.pk), "reason": freeze.reason, "until_ms": to_ms(freeze.until)}


def freeze_of(router: Router) -> RouterFreeze | None:
    """The one that stands: the router's own before the portal's, and either until somebody has looked."""
    return _open(router).order_by("by").first() if router.frozen_since else None


def _lock(router: Router) -> Router:
    return Router.objects.select_for_update(no_key=True).get(pk=router.pk)


def _open(router: Router) -> Any:
    return RouterFreeze.objects.filter(router=router, closed_at__isnull=True)


def _began(freeze: RouterFreeze, *, actor: str, now: datetime) -> None:
    Router.objects.filter(pk=freeze.router_id, frozen_since__isnull=True).update(frozen_since=now)
    data = {"reason": freeze.reason, "until": freeze.until.isoformat()}
    announce("router.frozen", now=now, router_id=freeze.router_id, actor=actor, data=data)


def _ended(freeze: RouterFreeze, *, actor: str, now: datetime) -> None:
    freeze.ended_at = now
    freeze.save(update_fields=["ended_at"])
    announce("router.freeze_ended", now=now, router_id=freeze.router_id, actor=actor)


def _close(freeze: RouterFreeze, *, looked_by: str, now: datetime) -> None:
    freeze.ended_at = freeze.ended_at or now
    freeze.closed_at, freeze.looked_by = now, looked_by
    freeze.save(update_fields=["ended_at", "closed_at", "looked_by"])
    if not _open(freeze.router).exists():
        Router.objects.filter(pk=freeze.router_id).update(frozen_since=None)
        converge_routers_anew([freeze.router_id], now=now)
