"""The bandwidth profile of an end, and which ends a router can police."""

from dataclasses import dataclass
from enum import StrEnum

from portal.core.network.vlan_tags import Tagging

# VPP's policers count in kbit/s.
MIN_RATE_BPS = 1000
# With smaller bursts, customers who send bursts lose frames although their rate is well below the CIR.
# Juniper's guideline for policers: at least 10 of the largest frames, and at least 5 ms at the rate. MEF 10.4
# only requires a CBS above 0.
BURST_FRAMES = 10
BURST_MS = 10
# The most bytes of VLAN tags that a frame has when VPP polices it. VPP pops these tags afterwards.
_POPPED_TAGS = 8
# The largest burst that the agent's contract and VPP's policers accept (docs/reference/agent-api.md).
MAX_BURST = 2**31 - 1


class Policing(StrEnum):
    """The ends whose incoming frames a router's VPP can police (docs/reference/agent-reports.md)."""

    NONE = "none"
    PORT = "port"
    SUBINTERFACE = "subinterface"

    def covers(self, tagging: Tagging) -> bool:
        """Return whether VPP can police an end with this tagging."""
        return self is Policing.SUBINTERFACE or (self is Policing.PORT and tagging is Tagging.UNTAGGED)


@dataclass(frozen=True, slots=True)
class BandwidthProfile:
    """An ingress bandwidth profile per EVC and UNI (MEF 10.4), color-blind.

    Rates are in bit/s and bursts in bytes. Without excess bandwidth, EIR and EBS are 0. Frames within CIR and
    CBS are green; frames within EIR and EBS are yellow. VPP treats green and yellow frames alike and forwards
    both. The portal books bandwidth only for the CIR.
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
    """Return the profile that a router polices for a line with frames of up to ``frame`` bytes.

    A CIR below 1 kbit/s becomes 1 kbit/s. A burst of None or 0 becomes the number of bytes that its rate
    allows in 10 ms, but at least 10 of the largest frames. Without an EIR, the EBS is 0.
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
