"""Loads on cores: the tables are measured, and costlier encapsulations and slower CPUs take more."""

import csv
from itertools import pairwise
from pathlib import Path

import pytest

from portal.allocation.packet_capacity import (
    IPV4_MPPS_PER_CORE,
    SLOWEST_CPU,
    bookable_load,
    dearest,
    end_load,
    largest_cir,
    load_per_core,
    packets_per_core,
)
from portal.core.network.encapsulations import AUTO_TUNNELS, COST, TUNNELS, Encapsulation, Transport

CONTRACT = Path(__file__).parents[2] / "contract"
GBIT = 10**9


def rows(name: str) -> list[dict[str, str]]:
    with (CONTRACT / name).open() as file:
        return list(csv.DictReader(file))


def test_the_cpus_are_the_measured_ones() -> None:
    measured = {row["cpu"]: float(row["ipv4_mpps_per_core"]) for row in rows("router-cpu.csv")}
    assert measured == IPV4_MPPS_PER_CORE


def test_the_encapsulations_have_the_measured_costs() -> None:
    measured = {
        Transport(row["encapsulation"] + row["family"]): float(row["mpps_per_core"])
        for row in rows("encapsulation-cost.csv")
    }
    assert measured == {transport: cost.mpps_per_core for transport, cost in COST.items()}


@pytest.mark.parametrize("transport", TUNNELS)
@pytest.mark.parametrize("cpu", IPV4_MPPS_PER_CORE)
def test_a_tunnels_end_takes_both_directions_over_what_a_core_carries(transport: Transport, cpu: str) -> None:
    # The policy's frame has 512 bytes; 20 more are sent over the wire (IEEE 802.3).
    packets = GBIT / ((512 + 20) * 8)
    mpps = COST[transport].mpps_per_core * IPV4_MPPS_PER_CORE[cpu] / IPV4_MPPS_PER_CORE["Ryzen 5950X"]
    share = 2 * packets / (mpps * 1e6)
    assert end_load(GBIT, transport) / load_per_core(cpu) == pytest.approx(share)


def test_a_local_cross_connect_handles_a_frame_once_for_both_of_its_ends() -> None:
    assert end_load(GBIT, Transport.L2XC) == GBIT
    assert end_load(GBIT, Transport.VXLAN4) == pytest.approx(2 * GBIT * 14.88 / 14.15)


def test_ten_gigabit_of_the_smallest_frames_fill_a_core_that_forwards_14_88_million_a_second(
    settings: object,
) -> None:
    settings.LONGLINE_CAPACITY_FRAME = 64
    assert load_per_core("Ryzen 5950X") == pytest.approx(10 * GBIT, rel=1e-3)


def test_later_candidates_of_auto_are_never_cheaper_except_gre() -> None:
    # Orders rely on it: if the first tunnel that fits the path is too costly, no other one is cheaper.
    spreading = [tunnel for tunnel in AUTO_TUNNELS if tunnel.encapsulation is not Encapsulation.GRE]
    loads = [end_load(GBIT, tunnel) for tunnel in spreading]
    assert all(earlier < later for earlier, later in pairwise(loads))


def test_a_reservation_covers_the_costliest_candidate() -> None:
    assert end_load(GBIT, dearest(within_router=False)) == max(end_load(GBIT, each) for each in Transport)
    assert dearest(within_router=True) is Transport.L2XC


def test_an_unmeasured_cpu_counts_as_the_slowest() -> None:
    slowest = packets_per_core(Transport.GRE6, cpu=SLOWEST_CPU)
    assert packets_per_core(Transport.GRE6, cpu="Z80") == slowest
    assert all(packets_per_core(Transport.GRE6, cpu=cpu) >= slowest for cpu in IPV4_MPPS_PER_CORE)


def test_part_of_the_cores_is_kept_free(settings: object) -> None:
    settings.LONGLINE_CORE_HEADROOM = 0.5
    assert bookable_load(cpu="Xeon D1518", cores=4) == pytest.approx(2 * load_per_core("Xeon D1518"), abs=1)


@pytest.mark.parametrize("transport", Transport)
@pytest.mark.parametrize("load", [0, 1, 2, 10**9 + 7, 177_297_000_001])
def test_the_largest_rate_is_exact_to_the_bit(transport: Transport, load: int) -> None:
    largest = largest_cir(load, transport)
    assert end_load(largest, transport) <= load < end_load(largest + 1, transport)
