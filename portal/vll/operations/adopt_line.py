"""Adopt lines that others have configured, without changing them (ADR 43).

Ports that are not in the inventory yet are created from the routers' observations.
"""

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import Customer, User
from portal.allocation.cpu_core_bookings import cores_lock
from portal.allocation.tunnel_leases import gre_key_lease_named, gre_pair_lease_named, vni_lease_named
from portal.core.errors import DomainError
from portal.core.network.encapsulations import Transport
from portal.core.network.required_mtu import ETHERNET_HEADER, VLAN_TAG
from portal.core.reader_texts import rate_text
from portal.inventory.found_lines import FoundEnd, FoundLine, found_circuits, found_lines
from portal.inventory.models import FRESH, ObservedInterface, ObservedRouter, Port, Router
from portal.inventory.operations import port_change, port_create
from portal.vll.convergence.requests import converge_routers
from portal.vll.errors import (
    AdoptionWhileFrozen,
    FoundLineOdd,
    FoundLineUnknown,
    FoundPortOfAnother,
    FoundPortUnknown,
    RouterAdoptsNothing,
)
from portal.vll.line_allocation import LeasedTunnel
from portal.vll.line_spec import EndSpec, LineSpec
from portal.vll.models import Order
from portal.vll.operations.add_line import vll_create
from portal.vll.operations.state_compare_and_swap import order_acknowledge
from portal.vll.quote import quote
from portal.vll.states import Handover, OrderAction

_TAGS = 2


class Difference(TextChoices):
    """The kinds of differences, each with a sentence for users."""

    TAG = (
        "tag",
        _(
            "The portal's tag replaces the tag “{tag}” of {interface} on {router}, which is restored when"
            " the line is let go of."
        ),
    )
    PORT_MADE = "port_made", _("{port} of {router} becomes a port of {customer}.")
    PORT_GIVEN = "port_given", _("{port} of {router} has no customer yet and is assigned to {customer}.")
    LIMITED = (
        "limited",
        _(
            "{rate} are booked at once, and enforced once both routers have the line. The line has no"
            " limit today."
        ),
    )


@dataclass(frozen=True, slots=True)
class AdoptionDifference:
    code: Difference
    facts: dict[str, Any]

    @property
    def sentence(self) -> str:
        """Return the sentence in the reader's language."""
        facts = dict(self.facts)
        if "cir_bps" in facts:
            facts["rate"] = rate_text(facts["cir_bps"])
        return self.code.label.format(**facts)


class FoundPorts:
    """The ports at the ends of found lines, read in one query before the lines are adopted."""

    def __init__(self, lines: Iterable[FoundLine]) -> None:
        ends = [end for line in lines for end in line.ends]
        ports = Port.objects.filter(
            router__in={end.router.pk for end in ends},
            interface__in={end.port for end in ends},
            retired_at__isnull=True,
        ).select_related("customer")
        self._ports = {(port.router_id, port.interface): port for port in ports}

    def of(self, end: FoundEnd) -> Port | None:
        return self._ports.get((end.router.pk, end.port))

    def customer(self, line: FoundLine) -> str:
        """Return the name of the customer of the line's ports, or "" if no existing port has a customer."""
        ports = [self.of(end) for end in line.ends]
        return next((port.customer.name for port in ports if port and port.customer), "")


def adoption_differences(line: FoundLine, order: Order, ports: FoundPorts) -> list[AdoptionDifference]:
    """Return the differences that the adoption of ``line`` makes.

    ``order``: the adoption order, real or simulated. ``ports``: the ports before the adoption.
    """
    found, customer = [], order.vll.customer.name
    for end in line.ends:
        where = {"router": end.router.name, "interface": end.interface}
        port, of_port = ports.of(end), {"router": end.router.name, "port": end.port, "customer": customer}
        if port is None:
            found.append(AdoptionDifference(Difference.PORT_MADE, of_port))
        elif port.customer is None:
            found.append(AdoptionDifference(Difference.PORT_GIVEN, of_port))
        if end.tag:
            found.append(AdoptionDifference(Difference.TAG, where | {"tag": end.tag}))
    found.append(AdoptionDifference(Difference.LIMITED, {"cir_bps": order.vll.cir_bps}))
    return found


def found_port(end: FoundEnd, *, customer: Customer | None, user: User, now: datetime) -> Port:
    """Return the port of a found end. A port without a customer, or a new port, is given to ``customer``.

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


# The largest number of lines in one request: a user can review them, and the portal handles them in seconds.
MOST_ADOPTIONS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """A found line, by its id, with the values of its order: ``svc_mtu`` in bytes, ``cir_bps`` in bit/s.

    ``customer``: the new owner of the line's ports, if they have no customer or are not in the inventory yet.
    """

    found_line: int
    description: str
    svc_mtu: int
    cir_bps: int
    customer: Customer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptionOutcome:
    """The result of one adoption, or of its dry run: an ``order`` and its differences, or a ``refusal``."""

    found_line: int
    order: Order | None = None
    differences: Sequence[AdoptionDifference] = ()
    refusal: DomainError | None = None


@transaction.atomic
def line_adopt(*, user: User, adoption: Adoption, now: datetime) -> Order:
    """Order both routers to take over this line. Raises a DomainError, and changes nothing, if a rule forbids
    it.
    """
    [outcome] = lines_adopt(user=user, wanted=[adoption], now=now)
    if outcome.order is None:
        assert outcome.refusal is not None  # noqa: S101 - it is one or the other
        raise outcome.refusal
    return outcome.order


def lines_adopt(
    *, user: User, wanted: Sequence[Adoption], now: datetime, dry_run: bool = False
) -> list[AdoptionOutcome]:
    """Order the routers to take over all these lines. Return the outcomes, sorted like ``wanted``.

    If one adoption is refused, or with ``dry_run``, nothing is adopted. Each adoption is checked as if the
    adoptions before it in ``wanted`` were done.

    A line belongs to the customer of its ports. The line keeps its VLANs, key and addresses, and the portal
    leases them as for any line. On the routers, only tags change. If a router cannot change the tags, the
    portal stops managing the line and leaves it unchanged. Bandwidth is enforced after both routers have
    taken over the line.
    """
    with transaction.atomic():
        circuits = found_circuits().filter(pk__in=[each.found_line for each in wanted])
        found = {line.id: line for line in found_lines(circuits)}
        _lock(found.values(), wanted)
        before = FoundPorts(found.values())
        outcomes = [_outcome(user, each, found.get(each.found_line), before, now) for each in wanted]
        if dry_run or any(each.refusal for each in outcomes):
            transaction.set_rollback(True)
    return outcomes


def _lock(lines: Collection[FoundLine], wanted: Sequence[Adoption]) -> None:
    """Lock all rows that these adoptions change, in the lock order of ADR 76."""
    ends = [end for line in lines for end in line.ends]
    routers = {end.router.pk for end in ends}
    customers = {each.customer.pk for each in wanted if each.customer}
    ports = Port.objects.filter(router__in=routers, interface__in={end.port for end in ends})
    list(Router.objects.select_for_update(no_key=True).filter(pk__in=routers).order_by("pk"))
    list(ports.locked().order_by("pk"))
    list(Customer.objects.select_for_update(no_key=True).filter(pk__in=customers).order_by("pk"))
    cores_lock(routers)


def _outcome(
    user: User, adoption: Adoption, found: FoundLine | None, before: FoundPorts, now: datetime
) -> AdoptionOutcome:
    try:
        if found is None:
            raise FoundLineUnknown
        with transaction.atomic():
            order = _adopt(user, adoption, found, now)
    except DomainError as refusal:
        return AdoptionOutcome(found_line=adoption.found_line, refusal=refusal)
    differences = adoption_differences(found, order, before)
    return AdoptionOutcome(found_line=adoption.found_line, order=order, differences=differences)


def _adopt(user: User, adoption: Adoption, found: FoundLine, now: datetime) -> Order:
    if found.hindrances:
        raise FoundLineOdd(odd=" ".join(each.sentence for each in found.hindrances))
    assert found.a and found.z  # noqa: S101, PT018 - otherwise the line would have hindrances
    assert found.transport is not None  # noqa: S101 - as above
    ends = {"a": found.a, "z": found.z}
    _require_adopting(ends, now)
    spec = LineSpec(
        description=adoption.description,
        a_end=_end_request(found.a, adoption.customer, user, now),
        z_end=_end_request(found.z, adoption.customer, user, now),
        svc_mtu=adoption.svc_mtu,
        cir_bps=adoption.cir_bps,
        transport=found.transport.value,
    )
    quoted, owner = quote(spec, user=user, now=now, lock=True), uuid.uuid4()
    # The interfaces of both ends are still foreign. They will become these ends, so do not count them.
    leased = quoted.ends_lease(owner, foreign={})
    tunnel = _tunnel_lease(found.transport, found.key, ends, owner=owner, now=now)
    content = quoted.content(leased, tunnel)
    tags = {
        side: {"access_tag_before": end.tag, "tunnel_tag_before": end.tunnel_tag or ""}
        for side, end in ends.items()
    }
    vll = vll_create(owner, quoted, content, now, handover=Handover.ADOPT, of_ends=tags)
    order = order_acknowledge(
        vll=vll,
        action=OrderAction.ADD,
        revision=vll.revision,
        actor=user.username,
        now=now,
        data={"transport": vll.transport, "vni": vll.vni, "gre_key": vll.gre_key, "adopted": True},
    )
    converge_routers(port.router_id for port in quoted.ports.values())
    quoted.cores_lease(owner)
    return order


def _require_adopting(ends: Mapping[str, FoundEnd], now: datetime) -> None:
    routers = {end.router.pk: end.router for end in ends.values()}
    seen = ObservedRouter.objects.in_bulk(routers, field_name="router_id")
    for pk, router in routers.items():
        observed = seen.get(pk)
        # An agent that cannot adopt would refuse the intent of the whole router.
        if observed is None or observed.adoption != "allowed" or observed.reported_at < now - FRESH:
            raise RouterAdoptsNothing(router=router.name)
        if router.frozen_since is not None:
            raise AdoptionWhileFrozen(router=router.name)


def _end_request(end: FoundEnd, customer: Customer | None, user: User, now: datetime) -> EndSpec:
    assert end.tagging is not None  # noqa: S101 - otherwise the line would have hindrances
    return EndSpec(
        port=found_port(end, customer=customer, user=user, now=now).pk,
        tagging=end.tagging,
        outer_vlan=end.outer_vlan,
        inner_vlan=end.inner_vlan,
        exact_match=end.exact_match,
    )


def _tunnel_lease(
    transport: Transport,
    key: int | None,
    ends: Mapping[str, FoundEnd],
    *,
    owner: uuid.UUID,
    now: datetime,
) -> LeasedTunnel:
    """Lease the identifiers of the line's tunnel. Raises TunnelKeyTaken, TunnelPairTaken."""
    if transport.family is None:
        return LeasedTunnel(addresses={"a": None, "z": None})
    addresses = {side: str(end.tunnel_address) for side, end in ends.items()}
    if key is not None and transport.encapsulation.leases_vni:
        vni_lease_named(key, owner=owner, now=now)
        return LeasedTunnel(vni=key, addresses=addresses)
    if key is not None:
        gre_key_lease_named(key, owner=owner, now=now)
        return LeasedTunnel(gre_key=key, addresses=addresses)
    gre_pair_lease_named((addresses["a"], addresses["z"]), owner=owner, now=now)
    return LeasedTunnel(addresses=addresses)
