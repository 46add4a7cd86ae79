"""An agent's report of its counters (docs/reference/agent-reports.md), read from JSON in one go."""

from datetime import timedelta
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from portal.core.strict_json import Natural53, Uuid

# No sample that is accepted covers more; who looks for those that reach into a time looks this far.
LONGEST_SAMPLE = timedelta(hours=1)

# What PostgreSQL's bigint and a Go int64 hold. A negative count is a contradiction to be kept and shown, not
# a form error.
Integer = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Natural = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class PolicerCount(Struct, frozen=True, forbid_unknown_fields=True):
    """A policer's count of what came in: what conforms or exceeds went on, what violates did not."""

    conform_bytes: Integer
    conform_packets: Integer
    exceed_bytes: Integer
    exceed_packets: Integer
    violate_bytes: Integer
    violate_packets: Integer


class EndCount(Struct, frozen=True, forbid_unknown_fields=True):
    """The count of one VLL end over the sample's interval; ``in`` is what the customer sent."""

    vll: Uuid
    side: Literal["a", "z"] = field(name="end")
    in_bytes: Integer
    in_packets: Integer
    out_bytes: Integer
    out_packets: Integer
    policer: PolicerCount | None = None
    # Frames that VPP dropped, those that the policer dropped among ``in``; None: not known.
    in_drops: Natural | None = None
    out_drops: Natural | None = None


class InterfaceCount(Struct, frozen=True, forbid_unknown_fields=True):
    """What an interface that the agent did not make carried and lost over the sample's interval, in frames.

    ``drops`` came in there and VPP dropped them, for whatever reason; the others never were VPP's, or could
    not leave it.
    """

    name: str
    rx_packets: Natural
    tx_packets: Natural
    drops: Natural
    rx_miss: Natural
    rx_errors: Natural
    rx_no_buffer: Natural
    tx_errors: Natural


class RouterCount(Struct, frozen=True, forbid_unknown_fields=True):
    """What the router did with packets, and its VPP's buffers at the end; None: VPP has no such count."""

    no_such_tunnel: Natural | None
    fragments_sent: Natural | None
    reassembled: Natural | None
    reassembly_failed: Natural | None
    buffers: Natural | None
    buffers_free: Natural | None


class CounterSample(Struct, frozen=True, forbid_unknown_fields=True):
    """One interval, from_ms < t <= to_ms by the agent's clock (milliseconds since the epoch)."""

    seq: Natural
    from_ms: Integer
    to_ms: Integer
    ends: Annotated[tuple[EndCount, ...], Meta(max_length=100_000)]
    interfaces: Annotated[tuple[InterfaceCount, ...], Meta(max_length=10_000)] = ()
    router: RouterCount | None = None


class CounterReport(Struct, frozen=True, forbid_unknown_fields=True):
    """Some samples of one run of the agent (``boot_id``); ``dropped`` is how many that run had to forget."""

    boot_id: Uuid
    sent_ms: Natural53
    simulated: bool
    dropped: Natural
    samples: Annotated[tuple[CounterSample, ...], Meta(max_length=10_000)]
