"""The configuration that the routers' operator has made by hand.

The drill configures it again after each start of a VPP, as a startup configuration does. At the end of the
drill it must be unchanged.
"""

from dataclasses import dataclass
from pathlib import Path

from devstack.isp import Isp
from devstack.routers.vpp import Vpp
from devstack.routers.vpp_network import commands_of
from drills.chaos.plan import HANDMADE, MEMIFS, ROUTERS

# Addresses, a bridge, a line and a policer that the portal does not manage.
_FOREIGN = (
    "create loopback interface instance 77",
    "set interface state loop77 up",
    "set interface ip address loop77 192.0.2.77/32",
    "set interface tag loop77 vppcfg-loop",
    "create loopback interface instance 78",
    "create bridge-domain 78 learn 1",
    "set interface l2 bridge loop78 78 bvi",
    "create sub-interfaces host-cust3 3999 dot1q 3999 exact-match",
    "set interface state host-cust3.3999 up",
    "set interface ip address host-cust3.3999 198.51.100.1/30",
    "create sub-interfaces host-cust3 3998 dot1q 3998 exact-match",
    "set interface state host-cust3.3998 up",
    "set interface tag host-cust3.3998 somebodys-line",
    "create vxlan tunnel src {here} dst {far} vni 3998 instance 3998",
    "set interface state vxlan_tunnel3998 up",
    "set interface l2 xconnect host-cust3.3998 vxlan_tunnel3998",
    "set interface l2 xconnect vxlan_tunnel3998 host-cust3.3998",
    "set interface l2 tag-rewrite host-cust3.3998 pop 1",
    "policer add name somebodys cir 1000 cb 15000 rate kbps round closest type 1r2c conform-action transmit"
    " exceed-action drop",
)


@dataclass(frozen=True, slots=True)
class Operator:
    """The operator. ``folder`` contains the sockets of the operator's memif ports to customers."""

    isp: Isp
    vpps: dict[str, Vpp]
    folder: Path

    def configure(self, router: str) -> None:
        """Configure the operator's objects. Ports and routes from `devstack` exist already. Raises
        CommandRefused.
        """
        self.vpps[router].configure(*self._memifs(router))
        here, far = self._loopbacks(router)
        for command in _FOREIGN:
            text = command.format(here=here, far=far)
            if text.startswith(("create bridge-domain", "policer add")):
                # These commands print a number.
                self.vpps[router].show(text)
            else:
                self.vpps[router].configure(text)

    def configure_again(self, router: str) -> None:
        """Configure all of the operator's objects in a VPP that has just started. Raises CommandRefused."""
        self.vpps[router].configure(*commands_of(self.isp.router(router), self.isp))
        self.configure(router)

    def _memifs(self, router: str) -> list[str]:
        commands = []
        for number, interface in enumerate(MEMIFS, start=1):
            socket = self.folder / f"memif-{router}-{number}.sock"
            commands += [
                f"create memif socket id {number} filename {socket}",
                f"create interface memif id 0 socket-id {number} master no-zero-copy",
                f"set interface state {interface} up",
            ]
        return commands

    def _loopbacks(self, router: str) -> tuple[str, str]:
        [far] = [name for name in ROUTERS if name != router]
        return self.isp.router(router).loopback4, self.isp.router(far).loopback4

    # -- lines that the portal adopts in the storm -----------------------------------------------------------

    def lay_lines(self) -> None:
        """Configure the lines that the portal will adopt. This happens only once: a VPP that dies loses its
        part of these lines.
        """
        for router in ROUTERS:
            here, far = self._loopbacks(router)
            for number in range(HANDMADE):
                access, tunnel, vni = self.access(number), f"vxlan_tunnel{4000 + number}", 4000 + number
                self.vpps[router].configure(
                    f"create sub-interfaces host-cust1 {vni - 3100} dot1q {vni - 3100} exact-match",
                    f"set interface state {access} up",
                    f"set interface tag {access} by-hand-{number}",
                    f"create vxlan tunnel src {here} dst {far} vni {vni} instance {vni}",
                    f"set interface state {tunnel} up",
                    f"set interface l2 xconnect {access} {tunnel}",
                    f"set interface l2 xconnect {tunnel} {access}",
                    f"set interface l2 tag-rewrite {access} pop 1",
                )

    def remove_lines(self) -> None:
        """Remove the lines of `lay_lines` that still exist. VPP's errors about lost lines are ignored."""
        for router in ROUTERS:
            here, far = self._loopbacks(router)
            for number in range(HANDMADE):
                self.vpps[router].show(f"delete sub-interface {self.access(number)}")
                self.vpps[router].show(f"create vxlan tunnel src {here} dst {far} vni {4000 + number} del")

    @staticmethod
    def access(number: int) -> str:
        return f"host-cust1.{900 + number}"
