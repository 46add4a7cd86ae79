"""The bandwidth profile of an end, and how far a router can police it."""

from dataclasses import dataclass
from enum import StrEnum

from portal.core.vlan_tags import Tagging

# What VPP's policers count in: kbit/s.
MIN_RATE_BPS = 1000
# A shallower bucket costs bursty customers frames well below their rate. Juniper's guideline for policers is
# no less than 10 of the largest frames and no less than 5 ms; MEF 10.4 only asks for a CBS above 0.
BURST_FRAMES = 10
BURST_MS = 10
# Tags that are on the frame when it is policed, and popped afterwards (bytes).
_POPPED_TAGS = 8
# The largest that the agent's contract and VPP's policers take (docs/reference/agent-api.md).
MAX_BURST = 2**31 - 1


class Policing(StrEnum):
    """The places where a router's VPP can police what comes in (docs/reference/agent-reports.md)."""

    NONE = "none"
    PORT = "port"
    SUBINTERFACE = "subinterface"

    def covers(self, tagging: Tagging) -> bool:
        """Whether an end that picks its frames so can be policed: a whole port, or VLANs of one."""
        return self is Policing.SUBINTERFACE or (self is Policing.PORT and tagging is Tagging.UNTAGGED)


@dataclass(frozen=True, slots=True)
class BandwidthProfile:
    """An ingress bandwidth profile per EVC and UNI (MEF 10.3), color-blind.

    Rates in bit/s, bursts in bytes; no excess: both 0. Frames within CIR and CBS are green, those within EIR
    and EBS yellow: both are forwarded, and neither color changes how. Only the CIR is booked.
    """

    cir_bps: int
    cbs_bytes: int
    eir_bps: int = 0
    ebs_bytes: int = 0


def bandwidth_profile(
    *,
    cir_bps: int,
    frame: int,
    eir_bps: int = 0,
    cbs_bytes: int | None = None,
    ebs_bytes: int | None = None,
) -> BandwidthProfile:
    """The profile that is policed for a line whose largest carried frame has ``frame`` bytes.

    A burst that is None becomes 10 ms at its rate and at least 10 of the largest frames. Without an EIR
    there is no EBS.
    """
    cir_bps = max(cir_bps, MIN_RATE_BPS)
    ebs = 0 if eir_bps == 0 else ebs_bytes or _default_burst(eir_bps, frame)
    return BandwidthProfile(
        cir_bps=cir_bps,
        cbs_bytes=cbs_bytes or _default_burst(cir_bps, frame),
        eir_bps=eir_bps,
        ebs_bytes=ebs,
    )


def _default_burst(rate_bps: int, frame: int) -> int:
    return max(BURST_FRAMES * (frame + _POPPED_TAGS), rate_bps * BURST_MS // 8000)
