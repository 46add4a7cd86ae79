"""The bandwidth profile of an end, and how far a router can police it."""

from dataclasses import dataclass
from enum import StrEnum

from portal.core.vlan_tags import Tagging

# VPP's policers count in kbit/s.
MIN_RATE_BPS = 1000
# With a shallower bucket, customers who send bursts lose frames well below their rate. Juniper's guideline
# for policers is at least 10 of the largest frames and at least 5 ms. MEF 10.4 only requires a CBS above 0.
BURST_FRAMES = 10
BURST_MS = 10
# Bytes of the tags that a frame still has when VPP polices it, and that VPP pops afterwards.
_POPPED_TAGS = 8
# The largest burst that the agent's contract and VPP's policers accept (docs/reference/agent-api.md).
MAX_BURST = 2**31 - 1


class Policing(StrEnum):
    """The places where a router's VPP can police incoming frames (docs/reference/agent-reports.md)."""

    NONE = "none"
    PORT = "port"
    SUBINTERFACE = "subinterface"

    def covers(self, tagging: Tagging) -> bool:
        """Return whether VPP can police an end with this tagging: a whole port, or VLANs of a port."""
        return self is Policing.SUBINTERFACE or (self is Policing.PORT and tagging is Tagging.UNTAGGED)


@dataclass(frozen=True, slots=True)
class BandwidthProfile:
    """An ingress bandwidth profile per EVC and UNI (MEF 10.3), color-blind.

    Rates are in bit/s and bursts in bytes. Without excess bandwidth, EIR and EBS are 0. Frames within CIR and
    CBS are green, frames within EIR and EBS are yellow. VPP forwards both colors alike. Only the CIR is
    booked.
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
    """Return the profile to police for a line. Its largest carried frame has ``frame`` bytes.

    A burst of None becomes 10 ms at its rate, and at least 10 of the largest frames. Without an EIR there is
    no EBS.
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
