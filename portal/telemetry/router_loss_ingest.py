"""Storage of the losses of routers and their interfaces, as agents count them."""

from collections.abc import Iterable, Sequence
from typing import Any

from portal.inventory.kinds import is_interface_name
from portal.inventory.models import Router
from portal.telemetry.reported_counters import CounterReport, CounterSample

# The counts of an interface, in frames: carried frames first, then losses.
OF_INTERFACES = (
    "rx_packets",
    "tx_packets",
    "drops",
    "rx_miss",
    "rx_errors",
    "rx_no_buffer",
    "tx_errors",
)
# Losses of the interface itself. ``drops`` are not among them, because VPP also drops frames on purpose.
LOST = ("rx_miss", "rx_errors", "rx_no_buffer", "tx_errors")
# The counts of a router, in packets.
OF_ROUTERS = ("no_such_tunnel", "fragments_sent", "reassembled", "reassembly_failed")
COUNTS = (*OF_INTERFACES, *OF_ROUTERS)
# VPP's buffers at one moment: all buffers, and the free buffers.
BUFFERS = ("buffers", "buffers_free")
COLUMNS = (*COUNTS, *BUFFERS)
# The value of the column ``interface`` in rows with a router's own counts.
ROUTER = ""

_INSERT = """
WITH stored AS (
    INSERT INTO telemetry_loss_sample (router_id, boot_id, simulated, seq, from_at, to_at, interface,
                                       {columns})
    SELECT %s, %s::uuid, %s, seq, 'epoch'::timestamptz + from_ms * interval '1 millisecond',
           'epoch'::timestamptz + to_ms * interval '1 millisecond', interface, {columns}
    FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::text[], {arrays})
         AS sample (seq, from_ms, to_ms, interface, {columns})
    ON CONFLICT DO NOTHING
    RETURNING from_at, to_at
)
INSERT INTO telemetry_stale_loss_bucket (router_id, step_s, start_at)
SELECT DISTINCT %s::bigint, 300, start_at
FROM stored, generate_series(date_bin('5 minutes', from_at, 'epoch'), to_at - interval '1 microsecond',
                           '5 minutes') AS start_at
ON CONFLICT DO NOTHING
""".format(columns=", ".join(COLUMNS), arrays=", ".join(["%s::bigint[]"] * len(COLUMNS)))  # noqa: S608 - constants


def losses_insert(
    cursor: Any, *, router: Router, report: CounterReport, good: Iterable[CounterSample]
) -> None:
    """Store the counts of the router and its interfaces from these samples, and mark their buckets as stale.

    Each count is stored once. The caller must protect the marks first
    (portal.telemetry.rollups.lock_buckets).
    """
    rows: list[tuple[CounterSample, str, Any]] = []
    for sample in good:
        if sample.router is not None:
            rows.append((sample, ROUTER, sample.router))
        named = {each.name: each for each in sample.interfaces if is_interface_name(each.name)}
        rows += [(sample, name, each) for name, each in named.items()]
    if not rows:
        return
    cursor.execute(
        _INSERT,
        [
            router.pk,
            report.boot_id,
            report.simulated,
            *([getattr(sample, name) for sample, _, _ in rows] for name in ("seq", "from_ms", "to_ms")),
            [name for _, name, _ in rows],
            *_columns([counted for _, _, counted in rows]),
            router.pk,
        ],
    )


def _columns(counted: Sequence[Any]) -> list[list[int | None]]:
    return [[getattr(each, name, None) for each in counted] for name in COLUMNS]
