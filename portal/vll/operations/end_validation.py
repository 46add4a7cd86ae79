"""Find the port of a requested end, and check the end. Nothing is leased yet."""

from collections.abc import Iterable, Mapping
from typing import Literal

from django.db.models import QuerySet

from portal.accounts import permissions
from portal.accounts.models import Customer, User
from portal.allocation.vlan_leases import Keys, overlap, tag_keys
from portal.core.db.compiled_query import CompiledQuery
from portal.core.errors import DomainError
from portal.core.network.vlan_tags import MIN_VLAN, Tagging, check_tagging
from portal.inventory.models import Port
from portal.inventory.port_link_state import with_link_speed
from portal.vll.errors import (
    EndsAreTheSame,
    NotAllowedToOrder,
    PortHasNoCustomer,
    PortOfAnotherCustomer,
    PortsOfTwoCustomers,
    RouterHasNoAgent,
    RouterInMaintenance,
)
from portal.vll.line_spec import EndSpec


def check_end(end: EndSpec, *, side: str) -> None:
    """Check that the VLANs fit the tagging. Raises the errors of ``portal.core.network.vlan_tags``."""
    outer = MIN_VLAN if end.outer_vlan == "any" else end.outer_vlan
    try:
        check_tagging(end.tagging, outer_vlan=outer, inner_vlan=end.inner_vlan, exact_match=end.exact_match)
    except DomainError as error:
        error.field = f"{side}_end.{error.field}"
        raise


def ports_of(user: User, ids: Iterable[int], *, lock: bool) -> dict[int, Port]:
    """Return, by id, those ports with one of these ids that this user may see.

    ``lock`` locks their rows in the order of their ids, so that two orders cannot deadlock. Rows that refer
    to a port, such as an end with a new report, can still be written.
    """
    if not user.is_active:
        return {}
    reader = () if user.is_noc else (user.pk,)
    ports = _PORTS(*reader, *sorted(set(ids)), noc=user.is_noc, lock=lock)
    return {port.pk: port for port in ports}


def _ports(*values: int, noc: bool, lock: bool) -> QuerySet[Port]:
    """Select the ports with given ids that a reader may see.

    With ``noc``, the reader is NOC staff, and ``values`` are the ids of the ports. Otherwise ``values`` are
    the id of the reader and then the ids of the ports.
    """
    reader = User(noc_role=User.NocRole.NOC) if noc else User(pk=values[0])
    ports = (
        Port.objects.visible_to(reader)
        .filter(pk__in=values if noc else values[1:])
        .order_by("pk")
        .select_related("router__site", "router__observed", "customer")
    )
    ports = with_link_speed(ports)
    return ports.locked() if lock else ports


_PORTS = CompiledQuery[Port](_ports)


def check_owner(port: Port, *, side: str, owner: Customer | None) -> None:
    """Check that the port has a customer, and that it is ``owner`` if the line has an owner already."""
    if port.customer is None:
        raise PortHasNoCustomer(field=f"{side}_end.port", port=str(port))
    if owner is not None and port.customer_id != owner.pk:
        raise PortOfAnotherCustomer(field=f"{side}_end.port", port=str(port), customer=owner.name)


def customer_of(user: User, ports: Mapping[str, Port]) -> Customer:
    """Return the common customer of both ports, after a check that this user may order for it."""
    a_port, z_port = ports["a"], ports["z"]
    if a_port.customer_id != z_port.customer_id:
        raise PortsOfTwoCustomers(a_port=str(a_port), z_port=str(z_port))
    customer = a_port.customer
    assert customer is not None  # noqa: S101 - check_owner came before, for the type checker
    if not permissions.may_order(user, customer):
        raise NotAllowedToOrder(customer=customer.name)
    return customer


def check_distinct(ports: Mapping[str, Port], a_end: EndSpec, z_end: EndSpec) -> None:
    """Refuse two ends that both select some frames of the same port."""
    if ports["a"].pk == ports["z"].pk and _overlap(a_end, z_end):
        raise EndsAreTheSame(port=str(ports["a"]))


def _overlap(a_end: EndSpec, z_end: EndSpec) -> bool:
    if Tagging.UNTAGGED in (a_end.tagging, z_end.tagging):
        return True
    one, other = (
        frames_named(end.tagging, outer=end.outer_vlan, inner=end.inner_vlan, exact_match=end.exact_match)
        for end in (a_end, z_end)
    )
    return one is not None and other is not None and overlap(one, other)


def frames_named(
    tagging: Tagging, *, outer: int | Literal["any"] | None, inner: int | None, exact_match: bool
) -> Keys | None:
    """Return the keys of the frames that an end selects on its port, for a single order or a table of orders.

    Return None if the portal chooses the outer VLAN, or if the VLANs do not fit the tagging. Another check
    refuses such VLANs.
    """
    if outer == "any":
        return None
    try:
        check_tagging(tagging, outer_vlan=outer, inner_vlan=inner, exact_match=exact_match)
    except DomainError:
        return None
    return tag_keys(tagging, outer=outer, inner=inner, exact_match=exact_match)


def named_first(ends: Mapping[str, EndSpec]) -> list[tuple[str, EndSpec]]:
    """Return the ends in the order of VLAN allocation. An end with "any" comes last, and avoids the other
    end's VLAN.
    """
    return sorted(ends.items(), key=lambda each: each[1].outer_vlan == "any")


def check_router(port: Port, *, side: str) -> None:
    """Refuse a router on which no VLL can end, or which takes no new lines now."""
    if not port.router.has_agent:
        raise RouterHasNoAgent(field=f"{side}_end.port", router=port.router.name)
    if port.router.maintenance_since is not None:
        raise RouterInMaintenance(field=f"{side}_end.port", router=port.router.name)
