"""Reading what an intent is made of: one query, however many VLLs end on the router."""

from django.db.models import F, OuterRef, Q, QuerySet, Subquery

from portal.core.policing import Policing
from portal.inventory.models import Router
from portal.vll.models import Order, VllEnd, VllTombstone
from portal.vll.policing import profile_of
from portal.vll.states import AdminStatus, Lifecycle, OrderAction, OrderState
from provisioning.intent import EndKey, EndRow

# Accepted, but nobody may tell a router of it yet.
_HELD_ADDS = Order.objects.filter(state=OrderState.HELD, action=OrderAction.ADD)
_GONE = (Lifecycle.TERMINATED, Lifecycle.CANCELLED)
_SETTLED = Q(status_revision=F("vll__revision")) & (
    Q(vll__wanted_present=True, status=VllEnd.Status.VERIFIED)
    | Q(vll__wanted_present=False, status=VllEnd.Status.REMOVED)
)


def end_rows(router: Router) -> list[EndRow]:
    """Every end on this router whose VLL's life is not over, and whose order waits for nobody's approval."""
    far = VllEnd.objects.filter(vll=OuterRef("vll")).exclude(side=OuterRef("side"))
    ends = (
        VllEnd.objects.filter(port__router=router)
        .exclude(vll__lifecycle__in=_GONE)
        .exclude(vll__in=_HELD_ADDS.values("vll"))
        .select_related("vll", "port")
        .annotate(
            far_address=Subquery(far.values("tunnel_address")), policing=F("port__router__observed__policing")
        )
    )
    return [
        _row(end, far_address=end.far_address, policing=Policing(end.policing or Policing.NONE))
        for end in ends
    ]


def moved_away(router: Router) -> list[EndKey]:
    """The ends that have left this router for another one, until it confirms that."""
    left = VllTombstone.objects.filter(router=router).values_list("vll", "side", "revision")
    return [EndKey(vll, side, revision, present=False) for vll, side, revision in left]


def unsettled_ends() -> QuerySet[VllEnd]:
    """Ends whose router has not yet confirmed what is wanted of them now."""
    return (
        VllEnd.objects.exclude(vll__lifecycle__in=_GONE)
        .exclude(_SETTLED)
        .exclude(vll__in=_HELD_ADDS.values("vll"))
    )


def unsettled_keys(router: Router) -> frozenset[EndKey]:
    """What a document must speak of before this router can be at rest."""
    rows = unsettled_ends().filter(port__router=router)
    return frozenset(
        EndKey(*values) for values in rows.values_list("vll", "side", "vll__revision", "vll__wanted_present")
    ) | frozenset(moved_away(router))


def _row(end: VllEnd, far_address: str | None, policing: Policing) -> EndRow:
    vll = end.vll
    tunnelled = vll.family is not None
    return EndRow(
        vll=vll.pk,
        side=end.side,
        revision=vll.revision,
        wanted_present=vll.wanted_present,
        confirmed_removed=end.status == VllEnd.Status.REMOVED and end.status_revision == vll.revision,
        admin_up=vll.admin_status == AdminStatus.UP,
        frame=vll.frame,
        interface=end.port.interface,
        tagging=end.tagging,
        outer_vlan=end.outer_vlan,
        inner_vlan=end.inner_vlan,
        exact_match=end.exact_match,
        encapsulation=vll.encapsulation,
        family=vll.family,
        local=end.tunnel_address if tunnelled else None,
        remote=far_address if tunnelled else None,
        vni=vll.vni,
        bandwidth=profile_of(vll, end, policing),
    )
