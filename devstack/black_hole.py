"""A link between two real VPPs that drops frames in one direction. Routes and interfaces do not change."""

from types import TracebackType

from devstack.routers.vpp_network import VppDataplane

UNKNOWN_MAC = "02:00:00:00:de:ad"


class BlackHole:
    """A context in which frames from one router to its neighbour get a MAC address that belongs
    to no interface.
    """

    def __init__(self, dataplane: VppDataplane, near: str, far: str) -> None:
        side = next(side for side in dataplane.isp.sides_of(dataplane.isp.router(near)) if side.far == far)
        self._vpp = dataplane.vpps[near]
        next_hops = [address.partition("/")[0] for address in side.far_addresses]
        self._neighbours = [f"{side.interface} {address} {UNKNOWN_MAC}" for address in next_hops]

    def __enter__(self) -> None:
        self._vpp.configure(*(f"set ip neighbor static {neighbour}" for neighbour in self._neighbours))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._vpp.configure(*(f"set ip neighbor del static {neighbour}" for neighbour in self._neighbours))
