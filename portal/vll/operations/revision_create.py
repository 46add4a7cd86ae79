"""Write content as the next revision of a VLL. The routers of the VLL's ends then build it."""

from datetime import datetime

from portal.inventory.models import Port
from portal.vll.convergence.requests import converge_routers, converge_routers_of
from portal.vll.line_revision import AllocatedEnd, LineRevision, content_of, loses_no_frame
from portal.vll.models import EndMove, Vll, VllEnd, VllTombstone
from portal.vll.operations.state_compare_and_swap import changed_in_place
from portal.vll.operations.tombstones import _NOT_OBSERVED, tombstone_create


def revise(vll: Vll, content: LineRevision, *, now: datetime) -> None:
    """Write ``content`` into the VLL as its next revision, and request convergence of its routers.

    An end that moves to another router leaves a tombstone and an EndMove on the old router. If the end moves
    back, its tombstone is deleted. The caller has locked the VLL and leased the resources of ``content``.
    """
    revision = vll.revision + 1
    before = content_of(vll)
    left: set[int] = set()
    kept_tunnel = before.tunnel_key == content.tunnel_key
    ends = vll.ends.select_related("port").order_by("side")
    ports = Port.objects.in_bulk({end.port for end in content.ends.values()})
    for end in ends:
        wanted = content.ends[end.side]
        old_router, new_router = end.port.router_id, ports[wanted.port].router_id
        if old_router != new_router:
            VllTombstone.objects.filter(vll=vll, side=end.side, router=new_router).delete()
        was = before.ends[end.side]
        same_tunnel = kept_tunnel and was.tunnel_address == wanted.tunnel_address
        _end_write(end, was, wanted, same_tunnel=same_tunnel)
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
        **content.columns, revision=revision, wanted_present=True, in_sync=False, in_sync_since=since
    )
    vll.refresh_from_db()
    converge_routers_of(vll)
    converge_routers(left)


def _end_write(end: VllEnd, was: AllocatedEnd, wanted: AllocatedEnd, *, same_tunnel: bool) -> None:
    """Write the wanted values into an end.

    The tags from before an adoption belong to the end's access and tunnel. If the access or the tunnel is
    replaced, its tag is dropped.
    """
    moved = dict(_NOT_OBSERVED) if was.port != wanted.port else {}
    if was.access != wanted.access:
        moved["access_tag_before"] = ""
    if not same_tunnel:
        moved["tunnel_tag_before"] = ""
    VllEnd.objects.filter(pk=end.pk).update(port=wanted.port, **wanted.columns, **moved)
