"""The transport that carries a VLL, or the reasons why no transport can.

The choice depends on the capabilities of both routers' VPPs and on their tunnel endpoints, as the agents have
reported them. For a router without a report, the portal uses the declared facts, and shows them as
assumptions.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from django.utils.translation import gettext_lazy as _

from portal.core.network.encapsulations import (
    AUTO_TUNNELS,
    COST,
    TUNNELS,
    Cost,
    Encapsulation,
    Family,
    Transport,
)
from portal.core.network.required_mtu import (
    MAX_SVC_MTU,
    carried_frame,
    largest_svc_mtu,
    overhead,
    required_ip_mtu,
)
from portal.underlay.errors import (
    Capacity,
    EncapsulationMissing,
    EndpointMissing,
    EndpointUnrouted,
    FamilyMissing,
    LocalAcrossRouters,
    NoPath,
    PathTooNarrow,
    TableUnknownToAgent,
    TableUnreadable,
    TransportRefused,
    TunnelWithinRouter,
)
from portal.underlay.path_mtu import PathPolicy, PathReport, path_check
from portal.underlay.topology import Router, Topology

_ASSUMED = {
    "encapsulation": _("{router} has not reported yet; its VPP is assumed to support {subject}."),
    "address": _("{router} has not reported yet; it is assumed to have {subject}, as declared."),
    "route": _("{router} has not reported yet; it is assumed to have a route to {subject}."),
}


@dataclass(frozen=True, slots=True)
class LineEnd:
    """One of the two routers of a line. ``loopbacks`` are declared; None marks facts without a report.

    * ``addresses``: the loopbacks that exist on the router.
    * ``routes``: routes to loopbacks of the other router; False for a route that drops packets.
    * ``gre_keys``: the router's VPP distinguishes GRE tunnels by key.
    * ``table``: the FIB table of the underlay.
    * ``knows_tables``: the router's agent can create tunnels in tables other than 0.
    """

    router: Router
    loopbacks: Mapping[Family, str]
    encapsulations: frozenset[Encapsulation] | None = None
    addresses: frozenset[str] | None = None
    routes: Mapping[str, bool] = field(default_factory=dict)
    gre_keys: bool = False
    table: int = 0
    knows_tables: bool = True


@dataclass(frozen=True, slots=True)
class Assumption:
    """The assumption that ``router`` has a declared ``encapsulation``, ``address`` or ``route``."""

    router: Router
    what: str
    subject: str

    @property
    def sentence(self) -> str:
        """Return the assumption and its reason for a reader."""
        return _ASSUMED[self.what].format(router=self.router.name, subject=self.subject)


def barred(
    a: LineEnd, z: LineEnd, transports: Iterable[Transport], *, gre_keys: Collection[Family] = ()
) -> dict[Transport, tuple[TransportRefused, ...]]:
    """Return the transports that the two routers do not support, with reasons.

    Families that an end lacks are skipped. ``gre_keys``: the families over which GRE has a key. The addresses
    of GRE without a key are not checked here: such a tunnel leases one of many address pairs, and the lease
    checks the addresses.
    """
    found = {transport: tuple(_against(a, z, transport, gre_keys)) for transport in transports}
    return {transport: against for transport, against in found.items() if against}


def _against(
    a: LineEnd, z: LineEnd, transport: Transport, gre_keys: Collection[Family]
) -> Iterable[TransportRefused]:
    for end in _routers(a, z):
        if end.encapsulations is not None and transport.encapsulation not in end.encapsulations:
            yield EncapsulationMissing(router=end.router, transport=transport)
        if transport.family is not None and end.table:
            if end.encapsulations is not None and not end.knows_tables:
                yield TableUnknownToAgent(router=end.router, table=end.table)
            elif transport is Transport.GENEVE6:
                yield TableUnreadable(router=end.router, table=end.table, transport=transport)
    for end, far, address in _endpoints(a, z, transport, gre_keys):
        if end.addresses is not None and address not in end.addresses:
            yield EndpointMissing(router=end.router, address=address, table=end.table)
        elif far.routes.get(address) is False:
            yield EndpointUnrouted(router=end.router, address=address, far=far.router)


def assumptions(
    a: LineEnd, z: LineEnd, transport: Transport, *, gre_keys: Collection[Family] = ()
) -> list[Assumption]:
    """Return the declared facts that the portal relies on because no agent has reported them."""
    found = [
        Assumption(end.router, "encapsulation", transport.encapsulation.value)
        for end in _routers(a, z)
        if end.encapsulations is None
    ]
    for end, far, address in _endpoints(a, z, transport, gre_keys):
        if end.addresses is None:
            found.append(Assumption(end.router, "address", address))
        if address not in far.routes:
            found.append(Assumption(far.router, "route", address))
    return found


def _routers(a: LineEnd, z: LineEnd) -> list[LineEnd]:
    return [a] if a.router == z.router else [a, z]


def _endpoints(
    a: LineEnd, z: LineEnd, transport: Transport, gre_keys: Collection[Family]
) -> Iterable[tuple[LineEnd, LineEnd, str]]:
    """Yield (end, far end, address) for the two ends of a tunnel."""
    if transport.family is None or a.router == z.router:
        return
    if transport.encapsulation is Encapsulation.GRE and transport.family not in gre_keys:
        return
    for end, far in ((a, z), (z, a)):
        address = end.loopbacks.get(transport.family)
        if address is not None:
            yield end, far, address


Barred = Mapping[Transport, tuple[TransportRefused, ...]]


@dataclass(frozen=True, slots=True)
class SelectedTransport:
    """A transport that carries the VLL. Sizes in bytes.

    ``frame``: the largest carried frame. ``required``: the IP MTU that each link of the path must have to
    carry this frame. L2XC uses no underlay: ``required`` and ``path`` are then None. ``gre_key``: the
    transport is GRE, and the tunnel has a key.
    """

    transport: Transport
    frame: int
    required: int | None = None
    path: PathReport | None = None
    gre_key: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """The routers ``a`` and ``z`` of a VLL, and what a transport between them may use.

    * ``a_families`` and ``z_families``: the families of each end's tunnel endpoints.
    * ``barred``: the transports that the routers do not support, with reasons.
    * ``gre_keys``: the families over which GRE has a key.
    """

    topology: Topology
    a: Hashable
    z: Hashable
    a_families: Iterable[Family]
    z_families: Iterable[Family]
    carried_tags: int
    policy: PathPolicy
    barred: Barred = field(default_factory=dict)
    gre_keys: Collection[Family] = ()

    def path(self, family: Family) -> PathReport:
        """Return the path over this family. Raises KeyError for an unknown router."""
        survives = self.policy.survives_one_failure
        return path_check(self.topology, self.a, self.z, family=family, any_single_failure=survives)

    def has_gre_key(self, transport: Transport) -> bool:
        """Return whether a tunnel with this transport is GRE and has a key."""
        return transport.encapsulation is Encapsulation.GRE and transport.family in self.gre_keys

    def capacities(self) -> tuple[Capacity, ...]:
        """Return the capacity of each supported tunnel that has a path of known MTU."""
        paths = {family: self.path(family) for family in set(self.a_families) & set(self.z_families)}
        capacities = []
        for transport in TUNNELS:
            path = paths.get(transport.family) if transport.family else None
            if path is None or path.path_mtu is None or transport in self.barred:
                continue
            largest = largest_svc_mtu(
                path.path_mtu,
                transport,
                self.policy.mtu,
                carried_tags=self.carried_tags,
                gre_key=self.has_gre_key(transport),
            )
            if largest is not None:
                capacities.append(Capacity(transport, largest))
        return tuple(capacities)


def select_transport(between: Between, *, svc_mtu: int, requested: Transport | None) -> SelectedTransport:
    """Return the transport for a VLL; ``requested`` None means ``auto``.

    ``auto`` takes L2XC within one router. Between routers it takes the cheapest tunnel that fits, and GRE
    last (``AUTO_TUNNELS`` explains why).

    Raises SvcMtuOutOfRange, or a TransportRefused that lists all transports that would fit instead. Raises
    KeyError for an unknown router.
    """
    frame = carried_frame(svc_mtu, carried_tags=between.carried_tags)
    barred = between.barred
    ends = between.topology.router(between.a), between.topology.router(between.z)
    if between.a == between.z:
        if requested not in (None, Transport.L2XC):
            error: TransportRefused = TunnelWithinRouter(router=ends[0], transport=requested)
            error.fits = () if Transport.L2XC in barred else (Transport.L2XC,)
            raise error
        if against := barred.get(Transport.L2XC):
            raise _with_others(against)
        return SelectedTransport(Transport.L2XC, frame)

    families = {ends[0]: set(between.a_families), ends[1]: set(between.z_families)}
    shared = set.intersection(*families.values())
    refusals: list[tuple[TransportRefused, ...]] = []
    for transport in AUTO_TUNNELS if requested is None else (requested,):
        family = transport.family
        against = barred.get(transport, ())
        if family is None:
            refusals.append((LocalAcrossRouters(a=ends[0], z=ends[1]), *against))
        elif family not in shared:
            lacking = tuple(router for router, present in families.items() if family not in present)
            refusals.append((FamilyMissing(routers=lacking, family=family), *against))
        else:
            gre_key = between.has_gre_key(transport)
            required = required_ip_mtu(frame, transport, between.policy.mtu, gre_key=gre_key)
            report = between.path(family)
            refusal = None if required is None else report.refusal(required)
            if refusal is None and not against:
                return SelectedTransport(transport, frame, required, report, gre_key)
            refusals.append(against if refusal is None else (refusal, *against))

    error = _with_others(_most_helpful(refusals))
    error.capacities = between.capacities()
    error.fits = tuple(c.transport for c in error.capacities if c.largest_svc_mtu >= svc_mtu)
    error.requested = requested
    raise error


@dataclass(frozen=True, slots=True)
class Option:
    """A transport between two ends, with its capacity, its overhead in bytes and its cost.

    ``largest_svc_mtu`` is None if the transport carries nothing: there is no path, the MTU of the path is
    unknown, or the ends do not support the transport (``barred``).
    """

    transport: Transport
    overhead: int
    largest_svc_mtu: int | None
    cost: Cost
    barred: tuple[TransportRefused, ...] = ()


def options(between: Between) -> tuple[Option, ...]:
    """Return all transports between the routers, cheapest first. Raises KeyError for an unknown router."""
    barred = between.barred
    if between.a == between.z:
        against = barred.get(Transport.L2XC, ())
        largest_here = None if against else MAX_SVC_MTU
        return (Option(Transport.L2XC, 0, largest_here, COST[Transport.L2XC], against),)
    largest = {each.transport: each.largest_svc_mtu for each in between.capacities()}
    found = [
        Option(
            tunnel,
            overhead(tunnel, between.policy.mtu, gre_key=between.has_gre_key(tunnel)),
            largest.get(tunnel),
            COST[tunnel],
            barred.get(tunnel, ()),
        )
        for tunnel in TUNNELS
    ]
    return tuple(sorted(found, key=lambda option: -option.cost.mpps_per_core))


def _most_helpful(refusals: list[tuple[TransportRefused, ...]]) -> tuple[TransportRefused, ...]:
    """Return the obstacles to the tunnel that comes nearest to carrying the line.

    The order of tunnels, nearest first, by their first obstacle:

    * a path that is too narrow or of unknown MTU, if it is the only obstacle;
    * such a path together with further obstacles, or a router that lacks support or an endpoint;
    * no path;
    * an end without the family.

    Of several equally near tunnels with narrow paths, the one with the smallest shortfall counts. Otherwise
    the first tunnel counts.
    """

    def remoteness(against: tuple[TransportRefused, ...]) -> int:
        match against[0]:
            case FamilyMissing():
                return 3
            case NoPath():
                return 2
            case (
                EncapsulationMissing()
                | TableUnknownToAgent()
                | TableUnreadable()
                | EndpointMissing()
                | EndpointUnrouted()
            ):
                return 1
            case _:
                return len(against) > 1

    nearest = min(refusals, key=remoteness)
    narrow = [
        (against[0].shortfall, at)
        for at, against in enumerate(refusals)
        if isinstance(against[0], PathTooNarrow) and remoteness(against) == remoteness(nearest)
    ]
    return refusals[min(narrow)[1]] if narrow and isinstance(nearest[0], PathTooNarrow) else nearest


def _with_others(against: tuple[TransportRefused, ...]) -> TransportRefused:
    """Return the first refusal, with the others attached."""
    against[0].also = against[1:]
    return against[0]
