"""An agent's counter report (docs/reference/agent-reports.md), decoded from JSON in one step."""

from datetime import timedelta
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from portal.core.strict_json import Natural53, Uuid

# The longest time that an accepted sample covers. Queries use it to find all samples that overlap a time.
LONGEST_SAMPLE = timedelta(hours=1)

# PostgreSQL's bigint and Go's int64. A negative count does not invalidate the report, only its end.
Integer = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Natural = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class PolicerCount(Struct, frozen=True, forbid_unknown_fields=True):
    """A policer's count of incoming frames. VPP forwards all but violating frames."""

    conform_bytes: Integer
    conform_packets: Integer
    exceed_bytes: Integer
    exceed_packets: Integer
    violate_bytes: Integer
    violate_packets: Integer


class EndCount(Struct, frozen=True, forbid_unknown_fields=True):
    """The count of one VLL end over the sample's interval. ``in`` comes from the customer."""

    vll: Uuid
    side: Literal["a", "z"] = field(name="end")
    in_bytes: Integer
    in_packets: Integer
    out_bytes: Integer
    out_packets: Integer
    policer: PolicerCount | None = None
    # Frames that VPP dropped; None if unknown. ``in_drops`` includes the frames that the policer dropped.
    in_drops: Natural | None = None
    out_drops: Natural | None = None


class InterfaceCount(Struct, frozen=True, forbid_unknown_fields=True):
    """Frames that a foreign interface (not created by the agent) carried and lost in the sample's interval.

    ``drops``: incoming frames that VPP dropped for any reason. The frames in the other loss counts never
    reached VPP's graph, or could not be sent.
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
    """The router's packets and buffers at the interval's end. A counter that VPP does not have is None."""

    no_such_tunnel: Natural | None
    fragments_sent: Natural | None
    reassembled: Natural | None
    reassembly_failed: Natural | None
    buffers: Natural | None
    buffers_free: Natural | None


class CounterSample(Struct, frozen=True, forbid_unknown_fields=True):
    """One interval, from_ms < t <= to_ms by the router's wall clock (milliseconds since the epoch).

    ``from_uptime_ms`` and ``to_uptime_ms``: the same interval by the router's uptime. They are absent from
    reports of release 0.1.0.
    """

    seq: Natural
    from_ms: Integer
    to_ms: Integer
    ends: Annotated[tuple[EndCount, ...], Meta(max_length=100_000)]
    interfaces: Annotated[tuple[InterfaceCount, ...], Meta(max_length=10_000)] = ()
    router: RouterCount | None = None
    from_uptime_ms: Natural53 | None = None
    to_uptime_ms: Natural53 | None = None


class CounterReport(Struct, frozen=True, forbid_unknown_fields=True):
    """Samples of one run of the agent (``boot_id``).

    ``dropped``: the number of samples that this run discarded because its store was full.
    ``kernel_boot_id``: the run of the router's kernel in which the samples were taken; None if the samples
    have no uptimes. ``sent_uptime_ms``: the uptime when the report was sent; None if the router was restarted
    since the samples were taken.
    """

    boot_id: Uuid
    sent_ms: Natural53
    simulated: bool
    dropped: Natural
    samples: Annotated[tuple[CounterSample, ...], Meta(max_length=10_000)]
    kernel_boot_id: Uuid | None = None
    sent_uptime_ms: Natural53 | None = None
