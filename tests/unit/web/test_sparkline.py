"""Sparklines: both directions on one scale, gaps stay gaps."""

from portal.telemetry.throughput import Recent
from portal.web.page.sparklines import HEIGHT, sparkline_of


def test_a_gap_breaks_the_line_and_a_lone_point_is_a_dot() -> None:
    spark = sparkline_of(Recent(a=[1.0, 2.0, None, 4.0, None], z=[None] * 5, simulated=False))
    assert spark is not None
    assert spark.a_to_z.count("M") == 2
    assert spark.a_to_z.count("L") == 1
    assert spark.z_to_a == ""


def test_both_directions_have_one_scale() -> None:
    spark = sparkline_of(Recent(a=[100.0, 100.0], z=[50.0, 50.0], simulated=False))
    assert spark is not None
    a, z = (float(path.split("h")[0].split()[-1]) for path in (spark.a_to_z, spark.z_to_a))
    assert a < z < HEIGHT


def test_the_current_value_is_the_newest_recent_sample() -> None:
    spark = sparkline_of(Recent(a=[5.0, 7.0, None], z=[5.0, None, None], simulated=False))
    assert spark is not None
    assert (spark.a_to_z_now, spark.z_to_a_now) == (7.0, None)


def test_no_samples_draw_nothing() -> None:
    assert sparkline_of(Recent(a=[None], z=[None], simulated=False)) is None
