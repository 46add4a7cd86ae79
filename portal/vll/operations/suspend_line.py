"""Suspend a line by shutting down its access, and resume it. Its configuration and leases stay."""

from dataclasses import replace
from datetime import datetime

from django.db import transaction

from portal.accounts.models import User
from portal.vll.errors import WrongLifecycle
from portal.vll.line_spec import content_of
from portal.vll.models import Order, Vll
from portal.vll.operations.modify_line import order_change, vll_lock
from portal.vll.states import AdminStatus, Lifecycle


@transaction.atomic
def order_suspend(*, user: User, vll: Vll, now: datetime, retry_of: Order | None = None) -> Order:
    """Stop an active line. Raises NotAllowedToOrder, OrderIsOpen, WrongLifecycle."""
    vll = vll_lock(vll, user)
    if vll.lifecycle != Lifecycle.ACTIVE:
        raise WrongLifecycle(lifecycle=vll.lifecycle, action="suspend")
    return _order_admin(vll, AdminStatus.DOWN, actor=user.username, now=now, retry_of=retry_of)


@transaction.atomic
def order_resume(*, user: User, vll: Vll, now: datetime, retry_of: Order | None = None) -> Order:
    """Let a suspended line forward again. Raises NotAllowedToOrder, OrderIsOpen, WrongLifecycle."""
    vll = vll_lock(vll, user)
    if vll.lifecycle != Lifecycle.SUSPENDED:
        raise WrongLifecycle(lifecycle=vll.lifecycle, action="resume")
    return _order_admin(vll, AdminStatus.UP, actor=user.username, now=now, retry_of=retry_of)


def _order_admin(vll: Vll, status: str, *, actor: str, now: datetime, retry_of: Order | None) -> Order:
    before = content_of(vll)
    after = replace(before, admin_status=status)
    return order_change(vll, before=before, after=after, actor=actor, now=now, retry_of=retry_of)
