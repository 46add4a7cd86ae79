"""Numbering intents. The number is taken under the router's row lock; the rows are read after it, at once."""

from datetime import datetime

from django.db import connection, transaction

from portal.core.path_bfd import wanted_watch
from portal.events.models import Event
from portal.events.outbox import announce
from portal.inventory.models import ObservedRouter, Router
from provisioning.intent_document import RouterIntent, intent_for
from provisioning.intent_rows import router_rows
from provisioning.path_probe_rows import probe_rows

BEHIND_AGENT = "router.behind_agent"


def next_intent(router: Router) -> RouterIntent:
    """Take the next generation and read what it says.

    READ COMMITTED: each statement sees what was committed before it began. Whoever takes a later
    number had to wait for this lock, so a document with a higher number never knows less.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE inventory_router SET generation = generation + 1 WHERE id = %s RETURNING generation",
                [router.pk],
            )
            (generation,) = cursor.fetchone()
        return router_intent(router, generation=generation)


def router_intent(router: Router, *, generation: int) -> RouterIntent:
    """The router's intent by the rows as they are now, under the number ``generation``."""
    rows, probes = router_rows(router), probe_rows(router)
    can_watch = ObservedRouter.objects.filter(router=router, path_watch=True).exists()
    return intent_for(
        router=router.name,
        generation=generation,
        rows=(*rows.ends, *probes.present),
        moved_away=(*rows.moved_away, *probes.removed),
        watch=wanted_watch(can_watch),
    )


def generation_take_back(router: Router, *, generation: int) -> None:
    """Undo ``next_intent`` after the agent refused that number as old.

    Otherwise each retry would count on until it overtook the agent, and a database restored from a
    backup would rewrite the router without anybody having looked.
    """
    Router.objects.filter(pk=router.pk, generation=generation).update(generation=generation - 1)


def behind_agent_announce(router: Router, *, held: object, since: datetime | None, now: datetime) -> None:
    """Report to the NOC, once, that the agent knows a newer intent than the portal.

    ``since`` is the time of the agent's last good response.
    """
    told = Event.objects.filter(router_id=router.pk, kind=BEHIND_AGENT)
    if since is not None:
        told = told.filter(at__gte=since)
    if not told.exists():
        announce(
            BEHIND_AGENT, now=now, router_id=router.pk, data={"held": held, "generation": router.generation}
        )
