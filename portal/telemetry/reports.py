"""What an agent reports of its counters (docs/agent-api.md), in the portal's own terms."""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

# No sample that is accepted covers more; who looks for those that reach into a time looks this far.
LONGEST_SAMPLE = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class PolicerCount:
    """What a policer counted of what came in: what conforms or exceeds went on, what violates did not."""

    conform_bytes: int
    conform_packets: int
    exceed_bytes: int
    exceed_packets: int
    violate_bytes: int
    violate_packets: int


@dataclass(frozen=True, slots=True)
class EndCount:
    """What one VLL end counted over the sample's interval; ``in`` is what the customer sent."""

    vll: UUID
    side: str
    in_bytes: int
    in_packets: int
    out_bytes: int
    out_packets: int
    policer: PolicerCount | None = None


@dataclass(frozen=True, slots=True)
class CounterSample:
    """One interval, from_ms < t <= to_ms by the agent's clock (milliseconds since the epoch)."""

    seq: int
    from_ms: int
    to_ms: int
    ends: tuple[EndCount, ...]


@dataclass(frozen=True, slots=True)
class CounterReport:
    """Some samples of one run of the agent (``boot_id``); ``dropped`` is how many that run had to forget."""

    boot_id: UUID
    sent_ms: int
    simulated: bool
    dropped: int
    samples: tuple[CounterSample, ...]
