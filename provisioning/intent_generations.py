"""A router's whole intent: its lines, its probes (ends without an access), and its number.

The portal takes the number under the lock of the router's row, and then reads the rows immediately.
"""

from datetime import datetime

from django.db import transaction

from portal.allocation.tunnel_leases import PROBE_VNI
from portal.core.db.statements import rows_of
from portal.core.network.encapsulations import Transport
from portal.core.network.path_bfd import wanted_watch
from portal.core.network.required_mtu import MAX_FRAME
from portal.events.announcements import announce
from portal.events.models import Event
from portal.inventory.models import ObservedRouter, Router
from portal.vll.models import TunnelPath
from portal.vll.operations.paths import probes_on
from provisioning.intent_document import EndKey, IntendedEnd, RouterIntent, end_members, intent_for
from provisioning.intent_rows import router_rows


def _probe_rows(router: Router) -> tuple[list[IntendedEnd], list[EndKey]]:
    """Return the wanted probes on a router, and the unwanted ones whose removal it has not confirmed.

    ``vll`` is the id of the path. Side "a" is the side of the path's ``a_router``.
    """
    paths = list(probes_on(router))
    present = [_row(path, path.side_of(router.pk)) for path in paths if path.probe_transport]
    left = [path for path in paths if not path.probe_transport]
    return present, [key for path in left if (key := _unconfirmed(path, router))]


def unconfirmed_probes(router: Router) -> frozenset[EndKey]:
    """Return the probes that this router has not confirmed. Every document must contain them until then."""
    return frozenset(key for path in probes_on(router) if (key := _unconfirmed(path, router)))


def _unconfirmed(path: TunnelPath, router: Router) -> EndKey | None:
    side = path.side_of(router.pk)
    if path.is_confirmed(side):
        return None
    return EndKey(path.pk, side, path.probe_revision, present=bool(path.probe_transport))


def _row(path: TunnelPath, side: str) -> IntendedEnd:
    transport = Transport(path.probe_transport)
    far = "z" if side == "a" else "a"
    members = end_members(
        admin_up=True,
        frame=MAX_FRAME,
        access=None,
        transport={
            "encapsulation": transport.encapsulation.value,
            "family": transport.family,
            "local": path.router(side).loopback(path.family),
            "remote": path.router(far).loopback(path.family),
            "vni": PROBE_VNI,
        },
        table=path.router(side).underlay_table,
        testing=True,
    )
    return IntendedEnd(
        vll=path.pk,
        side=side,
        revision=path.probe_revision,
        wanted_present=True,
        confirmed_removed=False,
        members=members,
    )


BEHIND_AGENT = "router.behind_agent"


def next_intent(router: Router) -> RouterIntent:
    """Take the next generation and read the intent.

    READ COMMITTED: each statement reads everything committed before it began. A transaction that takes a
    later number waits for this lock. So a document with a higher number never contains older data.
    """
    with transaction.atomic():
        [(generation,)] = rows_of(
            "UPDATE inventory_router SET generation = generation + 1 WHERE id = %s RETURNING generation",
            [router.pk],
        )
        return router_intent(router, generation=generation)


def router_intent(router: Router, *, generation: int) -> RouterIntent:
    """Return the router's intent from the present rows, with the number ``generation``."""
    rows, (probes, left) = router_rows(router), _probe_rows(router)
    can_watch = ObservedRouter.objects.filter(router=router, path_watch=True).exists()
    return intent_for(
        router=router.name,
        generation=generation,
        rows=(*rows.ends, *probes),
        moved_away=(*rows.moved_away, *left),
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
