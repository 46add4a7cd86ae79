"""The routers of a storm: real VPPs with the configuration of their operator, or stand-ins for VPP."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from devstack.isp import ALPINE_DAIRY, Isp, Port, small_isp
from devstack.process import Family
from devstack.routers import netns, vpp
from devstack.routers.vpp_network import VppDataplane
from devstack.routers.vppsim import SimulatedDataplane
from devstack.stack import Stack
from drills.chaos.operator import Operator
from drills.chaos.plan import MEMIFS, ROUTERS
from drills.checks.vpp_configuration import Configuration, lasting_configuration
from drills.checks.vpptestctl import VppRefused, VppTestctl

_TRIES = 20


class CannotRun(Exception):
    """The storm cannot run. The text is the reason, in one sentence."""


class Routers(Protocol):
    """The routers. The names of their processes begin with ``prefix``."""

    prefix: str

    @property
    def dataplane(self) -> VppDataplane | SimulatedDataplane: ...

    def lay(self, stack: Stack) -> None:
        """Configure the objects of the operator in each VPP."""

    def lay_handmade(self) -> None:
        """Configure the lines that the portal will adopt during the storm."""

    def revived(self, router: str) -> Callable[[], None]:
        """Return a function that restores a VPP's configuration after a restart, before any order reaches the
        VPP.
        """

    def handmade_interface(self, number: int) -> tuple[str, str]: ...

    def past_the_agent(self, router: str) -> VppTestctl: ...

    def configuration(self, router: str) -> Configuration:
        """Return a VPP's complete configuration, for comparison."""

    def remove_handmade(self) -> None: ...


def isp() -> Isp:
    return small_isp(extra_ports=tuple(Port(name, ALPINE_DAIRY) for name in MEMIFS))


def routers(family: Family, *, folder: Path, logs: Path, undo: ExitStack) -> Routers:
    """Return real routers if VPP is installed, otherwise stand-ins. Raises CannotRun."""
    try:
        installation = vpp.find()
    except vpp.NotInstalled:
        return SimulatedRouters(SimulatedDataplane(isp=isp(), folder=folder, logs=logs, family=family))
    unusable = netns.why_unusable()
    if unusable is not None:
        raise CannotRun(f"VPP is installed in {installation.prefix}, but {unusable}")
    netns.remove_leftovers()
    dataplane = VppDataplane(installation=installation, isp=isp(), folder=folder, logs=logs, family=family)
    undo.enter_context(dataplane)
    return RealRouters(dataplane, folder)


@dataclass
class RealRouters:
    dataplane: VppDataplane
    folder: Path
    prefix: str = "vpp"

    def __post_init__(self) -> None:
        self._operator = Operator(self.dataplane.isp, self.dataplane.vpps, self.folder)
        self._family = self.dataplane.family

    def lay(self, stack: Stack) -> None:
        for router in ROUTERS:
            self._operator.configure(router)

    def lay_handmade(self) -> None:
        self._operator.lay_lines()

    def revived(self, router: str) -> Callable[[], None]:
        def revive() -> None:
            self._family[f"vpp-{router}"].wait_until_ready()
            self._operator.configure_again(router)

        return revive

    def handmade_interface(self, number: int) -> tuple[str, str]:
        return ROUTERS[0], self._operator.access(number)

    def past_the_agent(self, router: str) -> VppTestctl:
        return VppTestctl(self.dataplane.vpps[router].sockets.api)

    def configuration(self, router: str) -> Configuration:
        return lasting_configuration(self.dataplane.vpps[router])

    def remove_handmade(self) -> None:
        self._operator.remove_lines()


@dataclass
class SimulatedRouters:
    """Stand-ins for VPP. They have no command line; vpptestctl reads and changes them.

    The only object of the operator is a sub-interface.
    """

    dataplane: SimulatedDataplane
    prefix: str = "vppsim"
    _vpps: dict[str, VppTestctl] = field(default_factory=dict)

    def lay(self, stack: Stack) -> None:
        self._vpps = {router: VppTestctl(stack.sockets[router].api) for router in ROUTERS}
        for router in ROUTERS:
            self._configure(router)

    def lay_handmade(self) -> None:
        """Do nothing: lines that the portal can adopt can only be configured on a command line."""

    def _configure(self, router: str) -> None:
        self._vpps[router].add_sub("host-cust3", 3999)

    def revived(self, router: str) -> Callable[[], None]:
        def revive() -> None:
            self.dataplane.family[f"vppsim-{router}"].wait_until_ready()
            # The sockets of the previous process still exist for a moment.
            for _ in range(_TRIES):
                try:
                    return self._configure(router)
                except VppRefused:
                    time.sleep(0.2)
            return self._configure(router)

        return revive

    def handmade_interface(self, number: int) -> tuple[str, str]:
        return ROUTERS[0], "none"

    def past_the_agent(self, router: str) -> VppTestctl:
        return self._vpps[router]

    def configuration(self, router: str) -> Configuration:
        shown = self.past_the_agent(router).config()
        names = {index: each["name"] for index, each in shown.interfaces.items()}
        return {
            "interfaces": sorted(
                f"{e['name']} {e['tag']} {e['admin_up']}" for e in shown.interfaces.values()
            ),
            "tunnels": sorted(f"{e['kind']} {e['local']} {e['remote']}" for e in shown.shown["tunnels"]),
            "connects": sorted(f"{names[a]} {names[z]}" for a, z in shown.connects.items()),
        }

    def remove_handmade(self) -> None:
        """Do nothing: ``lay_handmade`` has configured no line."""
