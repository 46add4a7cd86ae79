"""POST /api/agent/v1/counters (docs/agent-api.md)."""

from typing import Any

from portal.api.agent.door import report_endpoint
from portal.api.agent.fields import array, boolean, integer, nullable, one_of, record, uuid
from portal.core import clock
from portal.inventory.models import Router
from portal.telemetry.operations import counters_store
from portal.telemetry.reports import CounterReport, CounterSample, EndCount, PolicerCount

_POLICER = record(
    {
        f"{colour}_{what}": integer()
        for colour in ("conform", "exceed", "violate")
        for what in ("bytes", "packets")
    }
)
_END = record(
    {
        "vll": uuid,
        "end": one_of("a", "z"),
        # A negative count is a contradiction to be kept and shown, not a form error.
        "in_bytes": integer(),
        "in_packets": integer(),
        "out_bytes": integer(),
        "out_packets": integer(),
    },
    later={"policer": (nullable(_POLICER), None)},
)
_REPORT = record(
    {
        "schema": one_of(1),
        "boot_id": uuid,
        "sent_ms": integer(0, 2**53),
        "simulated": boolean,
        "dropped": integer(0),
        "samples": array(
            record(
                {
                    "seq": integer(0),
                    "from_ms": integer(),
                    "to_ms": integer(),
                    "ends": array(_END, maximum=100_000),
                }
            ),
            maximum=10_000,
        ),
    }
)


@report_endpoint(_REPORT)
def counters(router: Router, body: dict[str, Any]) -> dict[str, Any]:
    """Store the samples; the counts are of ends of samples."""
    stored = counters_store(router=router, report=_report(body), now=clock.now())
    return {"accepted": stored.accepted, "duplicate": stored.duplicate, "quarantined": stored.quarantined}


def _report(body: dict[str, Any]) -> CounterReport:
    return CounterReport(
        boot_id=body["boot_id"],
        sent_ms=body["sent_ms"],
        simulated=body["simulated"],
        dropped=body["dropped"],
        samples=tuple(
            CounterSample(
                seq=sample["seq"],
                from_ms=sample["from_ms"],
                to_ms=sample["to_ms"],
                ends=tuple(
                    EndCount(
                        vll=end["vll"],
                        side=end["end"],
                        in_bytes=end["in_bytes"],
                        in_packets=end["in_packets"],
                        out_bytes=end["out_bytes"],
                        out_packets=end["out_packets"],
                        policer=None if end["policer"] is None else PolicerCount(**end["policer"]),
                    )
                    for end in sample["ends"]
                ),
            )
            for sample in body["samples"]
        ),
    )
