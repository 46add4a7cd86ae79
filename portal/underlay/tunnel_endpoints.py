"""The two routers of a VLL: the capabilities of their VPPs and their tunnel endpoints.

The portal uses the facts that the router's agent has reported. For a router without a report, it uses the
declared facts, and shows them as assumptions.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from django.utils.translation import gettext_lazy as _

from portal.core.network.encapsulations import Encapsulation, Family, Transport
from portal.underlay.errors import (
    EncapsulationMissing,
    EndpointMissing,
    EndpointUnrouted,
    TableUnknownToAgent,
    TableUnreadable,
    TransportRefused,
)
from portal.underlay.topology import Router

_ASSUMED = {
    "encapsulation": _("{router} has not reported yet; its VPP is assumed to support {subject}."),
    "address": _("{router} has not reported yet; it is assumed to have {subject}, as declared."),
    "route": _("{router} has not reported yet; it is assumed to have a route to {subject}."),
}


@dataclass(frozen=True, slots=True)
class LineEnd:
    """One of the two routers of a line. ``loopbacks`` are declared; None marks facts that no agent has
    reported yet.

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
