"""Write content as the next revision of a VLL. The routers of the VLL's ends then build it."""

from datetime import datetime
from typing import Any

from portal.events.outbox import send_task
from portal.inventory.models import Port
from portal.vll.activation_test_rules import loses_no_frame
from portal.vll.models import EndMove, Vll, VllEnd, VllTombstone
from portal.vll.operations.convergence_requests import converge_routers_of
from portal.vll.operations.state_compare_and_swap import changed_in_place
from portal.vll.operations.tombstones import tombstone_create
from portal.vll.revision_content import Content, EndContent, content_of
from portal.vll.task_names import CONVERGE_ROUTER

_NOT_OBSERVED: dict[str, Any] = {
    "link_up": None,
    "link_since": None,
    "shut_down": False,
    "reachable": None,
    "observed_in_sync": None,
    "path_state": "",
    "path_since_ms": None,
    "drift": [],
    "contested": [],
    "vlan_loss": None,
}


def revise(vll: Vll, content: Content, *, now: datetime) -> None:
    """Write ``content`` into the VLL as its next revision, and request convergence of its routers.

    An end that moves to another router leaves a tombstone and an EndMove on the old router. If the end moves
    back, its tombstone is deleted. The caller has locked the VLL and leased the resources of ``content``.
    """
    revision = vll.revision + 1
    before = content_of(vll)
    left: set[int] = set()
    ends = vll.ends.select_related("port").order_by("side")
    ports = Port.objects.in_bulk({end.port for end in content.ends.values()})
    for end in ends:
        wanted = content.ends[end.side]
        old_router, new_router = end.port.router_id, ports[wanted.port].router_id
        if old_router != new_router:
            VllTombstone.objects.filter(vll=vll, side=end.side, router=new_router).delete()
        _end_write(end, wanted, same_tunnel=_tunnel_of(before, end.side) == _tunnel_of(content, end.side))
        if old_router != new_router:
            tombstone_create(
                vll,
                side=end.side,
                router_id=old_router,
                revision=revision,
                before=before,
                after=content,
            )
            EndMove.objects.create(vll=vll, side=end.side, router_id=old_router, left_at=now)
            left.add(old_router)
    flows_on = loses_no_frame(before, content) and (vll.in_sync or changed_in_place(vll.pk))
    since = vll.in_sync_since if flows_on else now
    Vll.objects.filter(pk=vll.pk).update(
        **content.line, revision=revision, wanted_present=True, in_sync=False, in_sync_since=since
    )
    vll.refresh_from_db()
    converge_routers_of(vll, now=now)
    for router in sorted(left):
        send_task(CONVERGE_ROUTER, router, now=now)


def _tunnel_of(content: Content, side: str) -> tuple[object, ...]:
    address = content.ends[side].tunnel_address
    return content.encapsulation, content.family, content.vni, content.gre_key, address


def _end_write(end: VllEnd, wanted: EndContent, *, same_tunnel: bool) -> None:
    """Write the wanted values into an end.

    The tags from before an adoption belong to the end's access and tunnel. If the access or the tunnel is
    replaced, its tag is dropped.
    """
    moved = dict(_NOT_OBSERVED) if end.port_id != wanted.port else {}
    picked = (end.port_id, end.tagging, end.outer_vlan, end.inner_vlan, end.exact_match)
    if picked != (
        wanted.port,
        wanted.tagging,
        wanted.outer_vlan,
        wanted.inner_vlan,
        wanted.exact_match,
    ):
        moved["access_tag_before"] = ""
    if not same_tunnel:
        moved["tunnel_tag_before"] = ""
    VllEnd.objects.filter(pk=end.pk).update(
        port=wanted.port,
        tagging=wanted.tagging,
        requested_outer_vlan=wanted.requested_outer_vlan,
        outer_vlan=wanted.outer_vlan,
        inner_vlan=wanted.inner_vlan,
        exact_match=wanted.exact_match,
        tunnel_address=wanted.tunnel_address,
        **moved,
    )
