"""Which transport carries a VLL, or why none does."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from portal.core.frames import MAX_SVC_MTU, carried_frame, largest_svc_mtu, overhead
from portal.core.transport import AUTO_TUNNELS, COST, TUNNELS, Cost, Family, Transport
from portal.underlay.errors import (
    Capacity,
    FamilyMissing,
    LocalAcrossRouters,
    NoPath,
    NotServiceable,
    TunnelWithinRouter,
)
from portal.underlay.path_mtu import PathReport, path_check
from portal.underlay.policy import PathPolicy
from portal.underlay.topology import Topology


@dataclass(frozen=True, slots=True)
class Serviceable:
    """A transport that carries the VLL. Sizes in bytes.

    ``frame``: the largest carried frame; ``required``: the IP MTU that this asks of the underlay. L2XC has
    no underlay: there ``required`` and ``path`` are None.
    """

    transport: Transport
    frame: int
    required: int | None = None
    path: PathReport | None = None


def serviceability(
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
) -> Serviceable:
    """The transport for a VLL between routers ``a`` and ``z``; ``requested`` None is ``auto``.

    ``a_families`` and ``z_families``: those of which each end has a tunnel endpoint. ``auto`` takes L2XC
    on one router, else the cheapest tunnel that fits, GRE never.

    Raises SvcMtuOutOfRange, or a NotServiceable that knows all that would fit instead; KeyError when a
    router is unknown.
    """
    frame = carried_frame(svc_mtu, carried_tags=carried_tags)
    ends = topology.router(a), topology.router(z)
    if a == z:
        if requested not in (None, Transport.L2XC):
            error: NotServiceable = TunnelWithinRouter(router=ends[0], transport=requested)
            error.fits = (Transport.L2XC,)
            raise error
        return Serviceable(Transport.L2XC, frame)

    families = {ends[0]: set(a_families), ends[1]: set(z_families)}
    shared = set.intersection(*families.values())

    def path(family: Family) -> PathReport:
        return path_check(topology, a, z, family=family, any_single_failure=policy.survives_one_failure)

    refusals: list[NotServiceable] = []
    for transport in AUTO_TUNNELS if requested is None else (requested,):
        family = transport.family
        if family is None:
            refusals.append(LocalAcrossRouters(a=ends[0], z=ends[1]))
        elif family not in shared:
            lacking = tuple(router for router, present in families.items() if family not in present)
            refusals.append(FamilyMissing(routers=lacking, family=family))
        else:
            required = frame + overhead(transport, policy.mtu, gre_key=policy.gre_key)
            report = path(family)
            refusal = report.refusal(required)
            if refusal is None:
                return Serviceable(transport, frame, required, report)
            refusals.append(refusal)

    error = _most_telling(refusals)
    error.capacities = _capacities(
        {family: path(family) for family in shared}, carried_tags=carried_tags, policy=policy
    )
    error.fits = tuple(c.transport for c in error.capacities if c.largest_svc_mtu >= svc_mtu)
    raise error


@dataclass(frozen=True, slots=True)
class Option:
    """A transport between two ends, with what it would carry, its overhead in bytes and what it costs.

    ``largest_svc_mtu`` is None where it carries nothing: no path, or one whose MTU is not known.
    """

    transport: Transport
    overhead: int
    largest_svc_mtu: int | None
    cost: Cost


def options(
    topology: Topology,
    a: Hashable,
    z: Hashable,
    *,
    a_families: Iterable[Family],
    z_families: Iterable[Family],
    carried_tags: int,
    policy: PathPolicy,
) -> tuple[Option, ...]:
    """Every transport between routers ``a`` and ``z``, cheapest first. KeyError when one is unknown."""
    if a == z:
        return (Option(Transport.L2XC, 0, MAX_SVC_MTU, COST[Transport.L2XC]),)
    paths = {
        family: path_check(topology, a, z, family=family, any_single_failure=policy.survives_one_failure)
        for family in set(a_families) & set(z_families)
    }
    largest = {
        c.transport: c.largest_svc_mtu for c in _capacities(paths, carried_tags=carried_tags, policy=policy)
    }
    found = [
        Option(
            tunnel,
            overhead(tunnel, policy.mtu, gre_key=policy.gre_key),
            largest.get(tunnel),
            COST[tunnel],
        )
        for tunnel in TUNNELS
    ]
    return tuple(sorted(found, key=lambda option: -option.cost.mpps_per_core))


def _most_telling(refusals: list[NotServiceable]) -> NotServiceable:
    """The refusal of the cheapest tunnel that has a path, else that of one whose ends have its family."""

    def remoteness(refusal: NotServiceable) -> int:
        match refusal:
            case FamilyMissing():
                return 2
            case NoPath():
                return 1
            case _:
                return 0

    return min(refusals, key=remoteness)


def _capacities(
    paths: dict[Family, PathReport], *, carried_tags: int, policy: PathPolicy
) -> tuple[Capacity, ...]:
    capacities = []
    for transport in TUNNELS:
        path = paths.get(transport.family) if transport.family else None
        if path is None or path.path_mtu is None:
            continue
        largest = largest_svc_mtu(
            path.path_mtu, transport, policy.mtu, carried_tags=carried_tags, gre_key=policy.gre_key
        )
        if largest is not None:
            capacities.append(Capacity(transport, largest))
    return tuple(capacities)
