"""The error for a VLAN that a removed line of the same customer still has.

The error names the line, the time until which the line keeps the VLAN, and the request that frees the VLAN
immediately.
"""

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

    A user who may order on a port may order for the port's customer, and so may see these lines. If a line of
    a former customer of the port has the VLAN, the error stays VlanTaken and does not mention that line.
    """
    try:
        yield
    except VlanTaken as taken:
        owners = set(taken.owners)
        lines = Vll.objects.filter(
            pk__in=owners, customer=port.customer_id, lifecycle=Lifecycle.PENDING_TERMINATE
        )
        # Name the line that is removed last, because only its removal frees the VLAN.
        found = sorted(lines, key=lambda line: (line.wanted_present, line.decommission_at or line.created_at))
        if port.customer_id is None or not found or len(found) < len(owners):
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
        owners=taken.owners,
        line=str(line.pk),
        description=line.description,
        until=until,
        free_now=None if until is None else f"DELETE /api/v1/vlls/{line.pk}?cooling_off=0",
    )
