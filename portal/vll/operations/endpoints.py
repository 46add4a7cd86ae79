"""From what was asked for an end to the port and the tags that it means, checked but not yet leased."""

from dataclasses import dataclass
from typing import Literal

from portal.accounts import policies
from portal.accounts.models import Customer, User
from portal.core.errors import DomainError
from portal.core.tagging import MIN_VLAN, Tagging, check_tagging
from portal.inventory.models import Port
from portal.vll.errors import (
    EndsAreTheSame,
    NotAllowedToOrder,
    PortHasNoCustomer,
    PortsOfTwoCustomers,
    PortUnknown,
    RouterHasNoAgent,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndRequest:
    """One end as ordered. ``outer_vlan`` "any" leaves the choice to the portal."""

    port: int
    tagging: Tagging
    outer_vlan: int | Literal["any"] | None = None
    inner_vlan: int | None = None
    exact_match: bool = True

    @property
    def requested_outer_vlan(self) -> int | None:
        """The VLAN that was named, or None."""
        return None if self.outer_vlan == "any" else self.outer_vlan


def check_end(end: EndRequest, *, side: str) -> None:
    """Whether the VLANs are those that the tagging needs. Raises the errors of ``portal.core.tagging``."""
    outer = MIN_VLAN if end.outer_vlan == "any" else end.outer_vlan
    try:
        check_tagging(end.tagging, outer_vlan=outer, inner_vlan=end.inner_vlan, exact_match=end.exact_match)
    except DomainError as error:
        error.field = f"{side}_end.{error.field}"
        raise


def lock_ports(user: User, a_end: EndRequest, z_end: EndRequest) -> tuple[Port, Port]:
    """Both ports, locked in id order so that no two orders wait for each other.

    Raises PortUnknown for a port that does not exist or that this user may not see.
    """
    ids = {a_end.port, z_end.port}
    locked = (
        Port.objects.visible_to(user)
        .filter(pk__in=ids)
        .order_by("pk")
        .select_for_update(of=("self",))
        .select_related("router", "customer")
    )
    ports = {port.pk: port for port in locked}
    for end, side in ((a_end, "a"), (z_end, "z")):
        if end.port not in ports:
            raise PortUnknown(field=f"{side}_end.port", port=end.port)
    return ports[a_end.port], ports[z_end.port]


def check_customer(user: User, a_port: Port, z_port: Port) -> Customer:
    """The one customer of both ports, for whom this user may order."""
    for port, side in ((a_port, "a"), (z_port, "z")):
        if port.customer is None:
            raise PortHasNoCustomer(field=f"{side}_end.port", port=str(port))
    if a_port.customer_id != z_port.customer_id:
        raise PortsOfTwoCustomers(a_port=str(a_port), z_port=str(z_port))
    customer = a_port.customer
    assert customer is not None  # noqa: S101 - checked above, for the type checker
    if not policies.may_order(user, customer):
        raise NotAllowedToOrder(customer=customer.name)
    return customer


def check_distinct(a_port: Port, z_port: Port, a_end: EndRequest, z_end: EndRequest) -> None:
    """Refuse two ends that pick the same frames of one port, and routers that cannot end VLLs."""
    same_tags = (a_end.tagging, a_end.outer_vlan, a_end.inner_vlan) == (
        z_end.tagging,
        z_end.outer_vlan,
        z_end.inner_vlan,
    )
    if a_port.pk == z_port.pk and same_tags and a_end.outer_vlan != "any":
        raise EndsAreTheSame(port=str(a_port))
    for port, side in ((a_port, "a"), (z_port, "z")):
        if not port.router.has_agent:
            raise RouterHasNoAgent(field=f"{side}_end.port", router=port.router.name)
