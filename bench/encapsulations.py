"""The cost of each transport on a router: clock cycles per frame in a real VPP, next to the shipped table.

build/agentbench measures the cycles with the agent's own package. The frames are already in the caches, and
no network card is involved. Compare only the ranks of the transports, and the ratios of their costs to the
cost of a local cross-connect.
"""

import csv
import subprocess
from collections.abc import Iterator, Mapping

from bench.figures import Figure
from devstack.folders import BUILD, ROOT
from devstack.routers import vpp

TABLE = ROOT / "tests" / "contract" / "encapsulation-cost.csv"
BASE = "l2xc"


def measure() -> Iterator[Figure]:
    table = shipped()
    try:
        vpp.find()
    except vpp.NotInstalled as reason:
        for transport in table:
            yield Figure(f"encap_cycles_{transport}", None, "clocks", str(reason))
        return
    command = [str(BUILD / "agentbench"), "-encapsulations"]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    yield from compared(table, printed)


def shipped() -> dict[str, float]:
    """Return the cycles per packet of each transport according to the shipped table, which order
    checks use.
    """
    with TABLE.open(newline="") as file:
        return {
            row["encapsulation"] + row["family"]: float(row["cycles_per_packet"])
            for row in csv.DictReader(file)
        }


def compared(table: Mapping[str, float], printed: str) -> Iterator[Figure]:
    """Yield the figures that agentbench printed, in the order of ``table``. The note of
    each figure has the rank and the ratio in ``table``, and then the measured rank and ratio.
    """
    measured: dict[str, tuple[float, str]] = {}
    for line in printed.splitlines():
        _, name, median, _, spread = line.split(maxsplit=4)
        measured[name.removeprefix("encap_cycles_")] = (float(median), spread)
    clocks = {transport: value for transport, (value, _) in measured.items()}
    for transport in table:
        value, note = measured[transport]
        rank, shipped_rank = (
            f"{_place(transport, each)}, {each[transport] / each[BASE]:.2f}" for each in (clocks, table)
        )
        yield Figure(
            f"encap_cycles_{transport}",
            value,
            "clocks",
            f"place and ratio to {BASE}: {rank}; in the table {shipped_rank}; {note}",
        )


def _place(transport: str, costs: Mapping[str, float]) -> int:
    return sorted(costs, key=lambda each: costs[each]).index(transport) + 1
