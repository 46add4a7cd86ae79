"""Every transport with every tagging, and the largest packet that each promises on the lab's underlay.

The figures repeat the planning column of the MTU rules. They are not computed with the portal's code, because
an error in the portal's arithmetic would then go unnoticed.
"""

from dataclasses import dataclass
from itertools import product

from devstack.isp import BACKBONE_IP_MTU
from devstack.traffic import DOT1AD, DOT1Q, Tag, frame

OVERHEAD = {"vxlan4": 36, "vxlan6": 56, "geneve4": 52, "geneve6": 72, "gre4": 32, "gre6": 52}
TRANSPORTS = ("l2xc", *OVERHEAD)
# The types of the tags that select a frame, outermost first.
SELECTING = {"untagged": (), "dot1q": (DOT1Q,), "qinq": (DOT1Q, DOT1Q), "dot1ad": (DOT1AD, DOT1Q)}
ETHERNET_HEADER = 14
TAG = 4
# A whole port promises room for two tags of the customer.
CUSTOMER_TAGS = {"untagged": (Tag(1001), Tag(1002)), "dot1q": (), "qinq": (), "dot1ad": ()}
PORT_MAX_FRAME = 9022
# The two ends differ, so that a tag that was not popped and pushed is noticed.
OUTER = {"a": 100, "z": 200}
INNER = {"a": 11, "z": 22}
STATIONS = {"a": bytes.fromhex("02000000000a"), "z": bytes.fromhex("02000000000b")}


@dataclass(frozen=True, slots=True)
class Combination:
    transport: str
    tagging: str

    def __str__(self) -> str:
        return f"{self.transport}-{self.tagging}"

    @property
    def largest_svc_mtu(self) -> int:
        carried = ETHERNET_HEADER + TAG * len(CUSTOMER_TAGS[self.tagging])
        if self.transport == "l2xc":
            return PORT_MAX_FRAME - carried - TAG * len(SELECTING[self.tagging])
        return BACKBONE_IP_MTU - OVERHEAD[self.transport] - carried

    def end(self, side: str, port: int) -> dict[str, object]:
        """Return the end in the form that `POST /api/v1/vlls` takes."""
        tags = len(SELECTING[self.tagging])
        return {
            "port": port,
            "tagging": self.tagging,
            "outer_vlan": OUTER[side] if tags >= 1 else None,
            "inner_vlan": INNER[side] if tags >= 2 else None,
            "exact_match": True,
        }

    def on_the_wire(self, *, of: str, at: str, packet: bytes) -> bytes:
        """Return the frame that carries `packet` from side `of`, as it appears on side `at`."""
        vlans = (OUTER[at], INNER[at])
        selecting = [Tag(vlan, tpid) for tpid, vlan in zip(SELECTING[self.tagging], vlans, strict=False)]
        return frame(
            destination=STATIONS["z" if of == "a" else "a"],
            source=STATIONS[of],
            tags=[*selecting, *CUSTOMER_TAGS[self.tagging]],
            payload=packet,
        )


ALL = tuple(Combination(transport, tagging) for transport, tagging in product(TRANSPORTS, SELECTING))
