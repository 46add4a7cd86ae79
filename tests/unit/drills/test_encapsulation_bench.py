"""The benchmark that compares measured costs of encapsulations with the shipped table."""

from bench.encapsulations import compared, shipped
from portal.core.network.encapsulations import COST


def test_the_table_is_that_of_admission_control() -> None:
    assert shipped() == {str(transport): cost.cycles_per_packet for transport, cost in COST.items()}


def test_each_figure_names_rank_and_ratio_in_both() -> None:
    printed = (
        "bench encap_cycles_l2xc 20.0 clocks 19.0 to 30.0 in 15 rounds of 1024 frames, 25.10-release\n"
        "bench encap_cycles_vxlan4 80.0 clocks 70.0 to 90.0 in 15 rounds of 1024 frames, 25.10-release\n"
        "bench encap_cycles_gre4 50.0 clocks 49.0 to 51.0 in 15 rounds of 1024 frames, 25.10-release\n"
    )
    figures = list(compared({"l2xc": 100.0, "vxlan4": 150.0, "gre4": 160.0}, printed))
    assert [(figure.name, figure.value, figure.unit) for figure in figures] == [
        ("encap_cycles_l2xc", 20.0, "clocks"),
        ("encap_cycles_vxlan4", 80.0, "clocks"),
        ("encap_cycles_gre4", 50.0, "clocks"),
    ]
    assert figures[1].note == (
        "place and ratio to l2xc: 3, 4.00; in the table 2, 1.50;"
        " 70.0 to 90.0 in 15 rounds of 1024 frames, 25.10-release"
    )
