"""The choice of the transport that carries a VLL, or the reasons why no transport can."""

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

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
from portal.underlay.topology import Topology

Barred = Mapping[Transport, tuple[TransportRefused, ...]]
NOTHING: Barred = MappingProxyType({})


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


def select_transport(
    topology: Topology,
    a: Hashable,
    z: Hashable,
    *,
    a_families: Iterable[Family],
    z_families: Iterable[Family],
    svc_mtu: int,
    carried_tags: int,
    requested: Transport | None,
    policy: PathPolicy,
    barred: Barred = NOTHING,
    gre_keys: Collection[Family] = (),
) -> SelectedTransport:
    """Return the transport for a VLL between routers ``a`` and ``z``; ``requested`` None means ``auto``.

    * ``a_families`` and ``z_families``: the families of each end's tunnel endpoints.
    * ``barred``: the transports that the routers do not support, with reasons.
    * ``gre_keys``: the families over which GRE has a key.

    ``auto`` takes L2XC within one router. Between routers it takes the cheapest tunnel that fits, and GRE
    last (``AUTO_TUNNELS`` explains why).

    Raises SvcMtuOutOfRange, or a TransportRefused that lists all transports that would fit instead. Raises
    KeyError for an unknown router.
    """
    frame = carried_frame(svc_mtu, carried_tags=carried_tags)
    ends = topology.router(a), topology.router(z)
    if a == z:
        if requested not in (None, Transport.L2XC):
            error: TransportRefused = TunnelWithinRouter(router=ends[0], transport=requested)
            error.fits = () if Transport.L2XC in barred else (Transport.L2XC,)
            raise error
        if against := barred.get(Transport.L2XC):
            raise _with_others(against)
        return SelectedTransport(Transport.L2XC, frame)

    families = {ends[0]: set(a_families), ends[1]: set(z_families)}
    shared = set.intersection(*families.values())

    def path(family: Family) -> PathReport:
        return path_check(topology, a, z, family=family, any_single_failure=policy.survives_one_failure)

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
            gre_key = _has_gre_key(transport, gre_keys)
            required = required_ip_mtu(frame, transport, policy.mtu, gre_key=gre_key)
            report = path(family)
            refusal = None if required is None else report.refusal(required)
            if refusal is None and not against:
                return SelectedTransport(transport, frame, required, report, gre_key)
            refusals.append(against if refusal is None else (refusal, *against))

    error = _with_others(_most_helpful(refusals))
    error.capacities = _capacities(
        {family: path(family) for family in shared},
        carried_tags=carried_tags,
        policy=policy,
        barred=barred,
        gre_keys=gre_keys,
    )
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


def options(
    topology: Topology,
    a: Hashable,
    z: Hashable,
    *,
    a_families: Iterable[Family],
    z_families: Iterable[Family],
    carried_tags: int,
    policy: PathPolicy,
    barred: Barred = NOTHING,
    gre_keys: Collection[Family] = (),
) -> tuple[Option, ...]:
    """Return all transports between routers ``a`` and ``z``, cheapest first.

    Raises KeyError for an unknown router.
    """
    if a == z:
        against = barred.get(Transport.L2XC, ())
        largest_here = None if against else MAX_SVC_MTU
        return (Option(Transport.L2XC, 0, largest_here, COST[Transport.L2XC], against),)
    paths = {
        family: path_check(topology, a, z, family=family, any_single_failure=policy.survives_one_failure)
        for family in set(a_families) & set(z_families)
    }
    largest = {
        c.transport: c.largest_svc_mtu
        for c in _capacities(
            paths, carried_tags=carried_tags, policy=policy, barred=barred, gre_keys=gre_keys
        )
    }
    found = [
        Option(
            tunnel,
            overhead(tunnel, policy.mtu, gre_key=_has_gre_key(tunnel, gre_keys)),
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


def _has_gre_key(transport: Transport, gre_keys: Collection[Family]) -> bool:
    return transport.encapsulation is Encapsulation.GRE and transport.family in gre_keys


def _capacities(
    paths: dict[Family, PathReport],
    *,
    carried_tags: int,
    policy: PathPolicy,
    barred: Barred,
    gre_keys: Collection[Family],
) -> tuple[Capacity, ...]:
    capacities = []
    for transport in TUNNELS:
        path = paths.get(transport.family) if transport.family else None
        if path is None or path.path_mtu is None or transport in barred:
            continue
        gre_key = _has_gre_key(transport, gre_keys)
        largest = largest_svc_mtu(
            path.path_mtu, transport, policy.mtu, carried_tags=carried_tags, gre_key=gre_key
        )
        if largest is not None:
            capacities.append(Capacity(transport, largest))
    return tuple(capacities)
