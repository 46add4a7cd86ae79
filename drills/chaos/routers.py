"""The routers of a storm: real VPPs with what their operator has on them, or stand-ins."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from devstack import netns, vpp
from devstack.isp import ALPINE_DAIRY, Isp, Port, small_isp
from devstack.process import Family
from devstack.stack import Stack
from devstack.vpp_network import VppDataplane
from devstack.vppsim import SimulatedDataplane
from drills.chaos.operator import Operator
from drills.chaos.plan import MEMIFS, ROUTERS
from drills.checks.vpp_configuration import Told, whole_configuration
from drills.checks.vpptestctl import VppRefused, VppTestctl

_TRIES = 20


class CannotRun(Exception):
    """The reason, in a sentence."""


class Routers(Protocol):
    """``prefix``: of the names of their processes."""

    prefix: str

    @property
    def dataplane(self) -> VppDataplane | SimulatedDataplane: ...

    def lay(self, stack: Stack) -> None:
        """What the operator has on them, in each VPP that begins."""

    def lay_handmade(self) -> None:
        """Lines that are to be taken over."""

    def revived(self, router: str) -> Callable[[], None]:
        """What makes a VPP that was started again what it was, before any order."""

    def handmade_interface(self, number: int) -> tuple[str, str]: ...

    def past_the_agent(self, router: str) -> VppTestctl: ...

    def told(self, router: str) -> Told:
        """All that is configured, for comparison."""

    def remove_handmade(self) -> None: ...


def isp() -> Isp:
    return small_isp(extra_ports=tuple(Port(name, ALPINE_DAIRY) for name in MEMIFS))


def routers(family: Family, *, folder: Path, logs: Path, undo: ExitStack) -> Routers:
    """Real ones where VPP is installed. Raises CannotRun."""
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
            self._operator.configure_anew(router)

        return revive

    def handmade_interface(self, number: int) -> tuple[str, str]:
        return ROUTERS[0], self._operator.access(number)

    def past_the_agent(self, router: str) -> VppTestctl:
        return VppTestctl(self.dataplane.vpps[router].sockets.api)

    def told(self, router: str) -> Told:
        return whole_configuration(self.dataplane.vpps[router])

    def remove_handmade(self) -> None:
        self._operator.remove_lines()


@dataclass
class SimulatedRouters:
    """The stand-in has no command line: vpptestctl reads it, and somebody's object is a sub-interface."""

    dataplane: SimulatedDataplane
    prefix: str = "vppsim"
    _vpps: dict[str, VppTestctl] = field(default_factory=dict)

    def lay(self, stack: Stack) -> None:
        self._vpps = {router: VppTestctl(stack.sockets[router].api) for router in ROUTERS}
        for router in ROUTERS:
            self._configure(router)

    def lay_handmade(self) -> None:
        """None: lines that are taken over need a command line to be made by."""

    def _configure(self, router: str) -> None:
        self._vpps[router].add_sub("host-cust3", 3999)

    def revived(self, router: str) -> Callable[[], None]:
        def revive() -> None:
            self.dataplane.family[f"vppsim-{router}"].wait_until_ready()
            # The sockets of the one before it are there longer than it was.
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

    def told(self, router: str) -> Told:
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
        """None was made."""
