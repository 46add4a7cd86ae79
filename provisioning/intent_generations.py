"""Numbering of intents.

The portal takes the number under the lock of the router's row, and then reads the rows immediately.
"""

from datetime import datetime

from django.db import connection, transaction

from portal.core.network.path_bfd import wanted_watch
from portal.events.models import Event
from portal.events.outbox import announce
from portal.inventory.models import ObservedRouter, Router
from provisioning.intent_document import RouterIntent, intent_for
from provisioning.intent_rows import router_rows
from provisioning.path_probe_rows import probe_rows

BEHIND_AGENT = "router.behind_agent"


def next_intent(router: Router) -> RouterIntent:
    """Take the next generation and read the intent.

    READ COMMITTED: each statement reads everything committed before it began. A transaction that takes a
    later number waits for this lock. So a document with a higher number never contains older data.
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
    """Return the router's intent from the present rows, with the number ``generation``."""
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

    Otherwise each retry would take another number, until the portal's number exceeded the agent's. After a
    restored backup, the portal would then rewrite the router before an operator had checked it.
    """
    Router.objects.filter(pk=router.pk, generation=generation).update(generation=generation - 1)


def behind_agent_announce(router: Router, *, stored: object, since: datetime | None, now: datetime) -> None:
    """Notify the NOC once that the agent has a newer intent.

    ``since``: the time of the agent's last good response. If the NOC was notified after ``since``, do
    nothing.
    """
    sent = Event.objects.filter(router_id=router.pk, kind=BEHIND_AGENT)
    if since is not None:
        sent = sent.filter(at__gte=since)
    if not sent.exists():
        announce(
            BEHIND_AGENT, now=now, router_id=router.pk, data={"held": stored, "generation": router.generation}
        )
