"""The ports of found lines, created from the routers' observations if they are not in the inventory yet."""

from datetime import datetime

from portal.accounts.models import Customer, User
from portal.core.network.required_mtu import ETHERNET_HEADER, VLAN_TAG
from portal.inventory.found_lines import FoundEnd
from portal.inventory.models import ObservedInterface, Port
from portal.inventory.operations import port_change, port_create
from portal.vll.errors import FoundPortOfAnother, FoundPortUnknown

_TAGS = 2


def found_port(end: FoundEnd, *, customer: Customer | None, user: User, now: datetime) -> Port:
    """Return the port of a found end. If the port has no customer or does not exist yet, ``customer`` gets
    it.

    Raises FoundPortOfAnother. Raises FoundPortUnknown if the port does not exist, and ``customer`` is None or
    VPP does not report the speed.
    """
    port: Port | None = Port.objects.filter(
        router=end.router, interface=end.port, retired_at__isnull=True
    ).first()
    if port is None:
        return _made(end, customer, user, now)
    if customer is None or port.customer_id == customer.pk:
        return port
    if port.customer is not None:
        raise FoundPortOfAnother(port=str(port), owner=port.customer.name, customer=customer.name)
    given: Port = port_change(port=port, user=user, now=now, customer=customer)
    return given


def _made(end: FoundEnd, customer: Customer | None, user: User, now: datetime) -> Port:
    seen = ObservedInterface.objects.filter(router=end.router, name=end.port).first()
    if customer is None or seen is None or not seen.speed_bps:
        raise FoundPortUnknown(router=end.router.name, interface=end.port)
    facts = {"customer": customer, "speed_bps": seen.speed_bps}
    if seen.ip_mtu:
        facts["max_frame"] = seen.ip_mtu + ETHERNET_HEADER + _TAGS * VLAN_TAG
    return port_create(router=end.router, interface=end.port, user=user, now=now, **facts)
