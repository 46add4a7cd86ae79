"""Shares of cores: the tables are the measured ones, and dearer encapsulations and slower CPUs take more."""

import csv
from pathlib import Path

import pytest

from portal.allocation.capacity import (
    IPV4_MPPS_PER_CORE,
    SLOWEST_CPU,
    Load,
    check_capacity,
    cores_bookable,
    cores_used,
    frames_per_s,
    packets_per_core,
    share,
)
from portal.allocation.errors import RouterFull
from portal.core.transport import COST, Transport

CONTRACT = Path(__file__).parents[1] / "contract"


def rows(name: str) -> list[dict[str, str]]:
    with (CONTRACT / name).open() as file:
        return list(csv.DictReader(file))


def test_the_cpus_are_the_measured_ones() -> None:
    measured = {row["cpu"]: float(row["ipv4_mpps_per_core"]) for row in rows("router-cpu.csv")}
    assert measured == IPV4_MPPS_PER_CORE


def test_the_encapsulations_cost_what_was_measured() -> None:
    measured = {
        Transport(row["encapsulation"] + row["family"]): float(row["mpps_per_core"])
        for row in rows("encapsulation-cost.csv")
    }
    assert measured == {transport: cost.mpps_per_core for transport, cost in COST.items()}


def test_ten_gigabit_of_the_smallest_frames_are_14_88_million_a_second() -> None:
    assert frames_per_s(10**10, frame=64) == pytest.approx(14_880_952, abs=1)


def test_a_share_is_both_directions_over_what_a_core_carries() -> None:
    load = Load(cir_bps=10**9, transport=Transport.VXLAN4)
    expected = 2 * 10**9 / ((512 + 20) * 8) / 14.15e6
    assert share(load, cpu="Ryzen 5950X", frame=512) == pytest.approx(expected)
    assert share(load, cpu="Xeon D1518", frame=512) == pytest.approx(expected * 22.28 / 10.20)


def test_a_cpu_that_nobody_measured_is_taken_for_the_slowest() -> None:
    slowest = packets_per_core(Transport.GRE6, cpu=SLOWEST_CPU)
    assert packets_per_core(Transport.GRE6, cpu="Z80") == slowest
    assert all(packets_per_core(Transport.GRE6, cpu=cpu) >= slowest for cpu in IPV4_MPPS_PER_CORE)


def test_shares_add_up_and_part_of_the_cores_is_kept_free(settings: object) -> None:
    settings.LONGLINE_CORE_HEADROOM = 0.5
    one = Load(10**9, Transport.GENEVE6)
    assert cores_used([one, one], cpu="Xeon D1518") == pytest.approx(2 * cores_used([one], cpu="Xeon D1518"))
    assert cores_bookable(4) == 2


def test_a_full_router_says_how_much_is_left(settings: object) -> None:
    settings.LONGLINE_CORE_HEADROOM, settings.LONGLINE_CAPACITY_FRAME = 0.5, 64
    one = Load(5 * 10**9, Transport.VXLAN4)  # 2 x 7.44 million packets/s: 1.052 cores
    facts = {"router": "rhino", "cpu": "Ryzen 5950X", "cores": 4, "wanted": one, "field": "a_end.port"}
    check_capacity(**facts, booked=[])
    with pytest.raises(RouterFull) as refused:
        check_capacity(**facts, booked=[one])
    full = refused.value
    assert (full.field, full.router, full.requested_cores, full.free_cores) == (
        "a_end.port",
        "rhino",
        1.052,
        0.948,
    )
