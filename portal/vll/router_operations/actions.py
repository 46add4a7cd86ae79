"""The NOC's actions on a router. Each function owns one transaction.

Maintenance: the router takes no new lines, but convergence goes on. The module ``drain`` has the drain, which
also moves traffic away.

Maintenance lock (``hold`` in the API): the portal sends nothing at all, so it cannot interfere with an
operator's work on the router.

Retry: the portal tries again now, and does not wait for the end of the pause after failures.

Dead: removals do not wait for the router's confirmation (portal.vll.operations.line_removal).
"""

from datetime import datetime

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce

from portal.accounts import permissions
from portal.accounts.models import User
from portal.events.outbox import announce
from portal.inventory.models import Router
from portal.vll.convergence.requests import converge_routers_on_request
from portal.vll.errors import NotForYouToForce, RouterIsDead, RouterIsDrained


@transaction.atomic
def router_maintenance_set(*, router: Router, on: bool, user: User, now: datetime) -> None:
    """Begin or end the maintenance. A repeated request changes nothing.

    The maintenance of a drained or dead router cannot end: raises RouterIsDrained, RouterIsDead.
    """
    if not on and Router.objects.filter(pk=router.pk, drained_since__isnull=False).exists():
        raise RouterIsDrained(router=router.name)
    if not on and Router.objects.filter(pk=router.pk, dead_since__isnull=False).exists():
        raise RouterIsDead(router=router.name)
    rows = Router.objects.filter(pk=router.pk, maintenance_since__isnull=on)
    if rows.update(maintenance_since=now if on else None):
        kind = "router.maintenance_began" if on else "router.maintenance_ended"
        announce(kind, now=now, router_id=router.pk, actor=user.username)
        if not on:
            converge_routers_on_request([router.pk], now=now)


@transaction.atomic
def router_lock_set(*, router: Router, on: bool, user: User, now: datetime) -> None:
    """Stop sending intents to the router, or resume and catch up immediately.

    An exchange with the router that is under way is completed.
    """
    rows = Router.objects.filter(pk=router.pk, locked_since__isnull=on)
    if rows.update(locked_since=now if on else None):
        announce(
            "router.held" if on else "router.released", now=now, router_id=router.pk, actor=user.username
        )
        if not on:
            converge_routers_on_request([router.pk], now=now)


@transaction.atomic
def router_retry(*, router: Router, user: User, now: datetime) -> None:
    """Try to converge the router now, and skip the pause after failures."""
    announce("router.retried", now=now, router_id=router.pk, actor=user.username)
    converge_routers_on_request([router.pk], now=now)


@transaction.atomic
def router_declare_dead(*, router: Router, user: User, now: datetime, reason: str) -> None:
    """Let all removals continue without this router's confirmation.

    Only NOC admins may do this. Maintenance begins as well. A repeated declaration changes nothing. Raises
    NotForYouToForce.
    """
    _check_may_force(user)
    locked = Router.objects.select_for_update(no_key=True).get(pk=router.pk)
    if locked.dead_since is not None:
        return
    Router.objects.filter(pk=router.pk).update(
        dead_since=now, maintenance_since=Coalesce(F("maintenance_since"), now)
    )
    if locked.maintenance_since is None:
        announce("router.maintenance_began", now=now, router_id=router.pk, actor=user.username)
    data = {"reason": reason}
    announce("router.declared_dead", now=now, router_id=router.pk, actor=user.username, data=data)


@transaction.atomic
def router_declare_alive(*, router: Router, user: User, now: datetime) -> None:
    """Let removals wait for the router's confirmation again, and converge the router.

    Its maintenance goes on. Raises NotForYouToForce.
    """
    _check_may_force(user)
    if Router.objects.filter(pk=router.pk, dead_since__isnull=False).update(dead_since=None):
        announce("router.declared_alive", now=now, router_id=router.pk, actor=user.username)
        converge_routers_on_request([router.pk], now=now)


def _check_may_force(user: User) -> None:
    if not permissions.may_remove_from_the_network(user):
        raise NotForYouToForce
