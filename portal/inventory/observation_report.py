"""What an agent reports of its router (docs/agent-api.md), in the portal's own terms."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from portal.core.unix_time import to_time


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What an interface received and sent over the last interval; ``speed_bps`` None: not known."""

    rx_bps: int
    tx_bps: int
    speed_bps: int | None


@dataclass(frozen=True, slots=True)
class InterfaceReport:
    """An interface that the agent did not make; ``addresses`` with prefix lengths, ``ip_mtu`` in bytes.

    ``linux_cp``: the Linux interface that it is paired with, "" for none. ``load``: None where nothing tells.
    """

    name: str
    admin_up: bool
    link_up: bool
    ip_mtu: int | None
    addresses: tuple[str, ...]
    linux_cp: str = ""
    load: LoadReport | None = None


@dataclass(frozen=True, slots=True)
class RouteReport:
    """Whether the best route to a tunnel address is other than a drop."""

    address: str
    reachable: bool


@dataclass(frozen=True, slots=True)
class SetAsideReport:
    """A file of the agent that it could not use, by its path on the router."""

    file: str
    why: str


@dataclass(frozen=True, slots=True)
class ObservedReport:
    """One report; times in milliseconds since the epoch by the agent's (``vpp_boot_ms``: VPP's) clock.

    ``look`` numbers the agent's looks at VPP, its answers' among them; None: it does not say.
    ``vpp_plugins``: those that VPP has loaded; None: not known. ``vpp_absent``: no VPP runs; one that is
    there and does not answer may forward all the same. ``vpp_hangs``: it takes connections and answers
    nothing.
    """

    boot_id: UUID
    sent_ms: int
    agent_version: str
    vpp_connected: bool
    vpp_version: str | None
    vpp_boot_ms: int | None
    vpp_workers: int | None
    simulated: bool
    encapsulations: tuple[str, ...]
    policing: str
    generation_held: int | None
    generation_applied: int | None
    interfaces: tuple[InterfaceReport, ...]
    routes: Sequence[RouteReport]
    look: int | None = None
    vpp_plugins: tuple[str, ...] | None = None
    vpp_absent: bool = False
    vpp_hangs: bool = False
    set_aside: tuple[SetAsideReport, ...] = ()

    @property
    def vpp_booted_at(self) -> datetime | None:
        """As ``vpp_boot_ms``."""
        if self.vpp_boot_ms is None:
            return None
        return to_time(self.vpp_boot_ms)
