"""A VLAN that a customer's own removed line still has: which line, until when, and how to free it now."""

from collections.abc import Iterator
from contextlib import contextmanager

from portal.allocation.errors import VlanTaken
from portal.inventory.models import Port
from portal.vll.errors import VlanCoolingOff
from portal.vll.models import Vll
from portal.vll.states import Lifecycle


@contextmanager
def removed_lines_named(port: Port) -> Iterator[None]:
    """Raise VlanCoolingOff instead of VlanTaken if only removed lines of the port's customer have the VLAN.

    A user who may order on a port may order for its customer, and so may see these lines. A port may still
    carry a line of its former customer. The error never mentions such a line.
    """
    try:
        yield
    except VlanTaken as taken:
        holders = set(taken.holders)
        lines = Vll.objects.filter(
            pk__in=holders, customer=port.customer_id, lifecycle=Lifecycle.PENDING_TERMINATE
        )
        # The line that is removed last: the VLAN is not free before.
        found = sorted(lines, key=lambda line: (line.wanted_present, line.decommission_at or line.created_at))
        if port.customer_id is None or not found or len(found) < len(holders):
            raise
        raise _refusal(taken, found[-1]) from taken


def _refusal(taken: VlanTaken, line: Vll) -> VlanCoolingOff:
    # A removal that is under way ends without a user's action.
    until = line.decommission_at if line.wanted_present else None
    return VlanCoolingOff(
        field=taken.field,
        port=taken.port,
        vlans=taken.vlans,
        whole_port_taken=taken.whole_port_taken,
        holders=taken.holders,
        line=str(line.pk),
        description=line.description,
        until=until,
        free_now=None if until is None else f"DELETE /api/v1/vlls/{line.pk}?cooling_off=0",
    )
