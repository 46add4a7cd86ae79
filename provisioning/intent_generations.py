"""A router's whole intent: its lines, its probes (ends without an access), and its number.

The portal takes the number under the lock of the router's row, and then reads the rows immediately. After a
backup was restored, an agent may have a newer intent than the database. A preview then shows how the router
differs from the database, and a reconciliation continues from the agent's number.
"""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from portal.accounts import permissions
from portal.accounts.models import User
from portal.allocation.tunnel_leases import PROBE_VNI
from portal.core.db.statements import rows_of
from portal.core.network.encapsulations import Transport
from portal.core.network.path_bfd import wanted_watch
from portal.core.network.required_mtu import MAX_FRAME
from portal.events.announcements import announce
from portal.events.models import Event
from portal.inventory.models import ObservedRouter, Router
from portal.vll.convergence.requests import (
    generation_count_from,
    reconciliation_drop,
    reconciliation_is_pending,
)
from portal.vll.models import TunnelPath
from portal.vll.operations.paths import probes_on
from provisioning.agent_client import Refused, Unreachable, agent_of
from provisioning.agent_reply_decoder import Owned
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

    ``since``: the time of the agent's last good response. Do nothing if the NOC was notified after it.
    """
    sent = Event.objects.filter(router_id=router.pk, kind=BEHIND_AGENT)
    if since is not None:
        sent = sent.filter(at__gte=since)
    if not sent.exists():
        announce(
            BEHIND_AGENT, now=now, router_id=router.pk, data={"held": stored, "generation": router.generation}
        )


class StateUnavailable(Exception):
    """The agent does not report its stored intent."""


def generation_adopt_on_request(
    *, router_id: int, actor: str, requested_at: datetime | None, now: datetime
) -> int | None:
    """Carry out a pending request for ``generation_adopt``.

    Return None if the request was carried out, dropped or replaced meanwhile, or if its user has lost the
    permission. ``requested_at`` None: a portal of the previous release sent the task and stored no request.
    """
    if not reconciliation_is_pending(router_id, requested_at=requested_at, now=now):
        return None
    user = User.objects.filter(username=actor).first()
    if user is None or not permissions.may_run_the_network(user):
        reconciliation_drop(router_id, requested_at=requested_at)
        return None
    return generation_adopt(router_id=router_id, actor=actor, requested_at=requested_at, now=now)


def generation_adopt(
    *, router_id: int, actor: str, now: datetime, requested_at: datetime | None = None
) -> int | None:
    """Query the agent's stored intent and continue from its generation.

    Return None if there is no agent to query, or the request of ``requested_at`` is over. Raises
    StateUnavailable if the agent does not report its intent. The task logs the error, and the alarm stays
    until a reconciliation succeeds.
    """
    router = Router.objects.exclude(agent_url="").filter(pk=router_id).first()
    if router is None:
        return None
    with agent_of(router) as agent:
        stored = agent.stored_intent()
    if isinstance(stored, Unreachable):
        raise StateUnavailable(f"{router.name} does not report its state: {stored.error}")
    return generation_count_from(
        router=router, stored=stored.generation, actor=actor, now=now, requested_at=requested_at
    )


End = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ReconcilePreview:
    """The effects of a reconciliation of one router.

    ``stored``: the generation of the agent's intent. ``generation``: the generation in the database. Ends are
    ``(line's id, "a" or "z")``. ``quarantined``: ends that the agent owns and the database does not name; the
    reconciliation does not remove them. ``made``: missing ends. ``changed``: ends that differ from the
    database. ``removed``: ends to delete. ``hindered``: ends with an obstacle, each with a sentence about it.
    """

    router: str
    stored: int
    generation: int
    quarantined: dict[End, list[Owned]]
    made: list[End]
    changed: list[End]
    removed: list[End]
    hindered: dict[End, str]

    @property
    def is_behind(self) -> bool:
        return self.stored > self.generation


def reconcile_preview(router: Router) -> ReconcilePreview:
    """Return the preview. Raises StateUnavailable if the agent does not respond, or reports no plan."""
    intent = router_intent(router, generation=max(router.generation, 1))
    with agent_of(router) as agent:
        state = agent.state()
        if isinstance(state, Unreachable):
            raise StateUnavailable(f"{router.name} does not report its state: {state.error}")
        plan = agent.plan(intent.document())
    match plan:
        case Unreachable(error):
            raise StateUnavailable(f"{router.name} does not return a plan: {error}")
        case Refused(problem=problem):
            detail = problem.get("detail") or problem["type"]
            raise StateUnavailable(f"{router.name} does not say what it would do: {detail}")
    owned: dict[End, list[Owned]] = {}
    for each in state.owned:
        owned.setdefault((each.vll, each.end), []).append(each)
    wanted = {(str(key.vll), key.side): key.present for key in intent.end_keys()}
    todo = {(each["vll"], each["end"]) for each in plan["operations"]}
    quarantined = {(each["vll"], each["end"]) for each in plan["quarantined"]}
    return ReconcilePreview(
        router=router.name,
        stored=state.stored.generation if state.stored else 0,
        generation=router.generation,
        quarantined={end: owned.get(end, []) for end in sorted(quarantined)},
        made=sorted(end for end in todo if wanted.get(end) and end not in owned),
        changed=sorted(end for end in todo if wanted.get(end) and end in owned),
        removed=sorted(end for end in todo if not wanted.get(end)),
        hindered={
            (each["vll"], each["end"]): (each["reason"] or {}).get("message", "") for each in plan["ends"]
        },
    )
