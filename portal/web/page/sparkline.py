"""The traffic of a line in the last hour as a sparkline for tables: two SVG paths and the current rates."""

from collections.abc import Sequence
from dataclasses import dataclass

from portal.telemetry.throughput import Recent

WIDTH, HEIGHT = 72, 24
# A little more than half of the stroke's width, so that the edges of the image do not cut it off.
_MARGIN = 2
# The current rate is searched in this number of newest buckets. If the routers report, at least one of these
# buckets has a value.
_NOW = 2


@dataclass(frozen=True, slots=True)
class Sparkline:
    """The sparkline of a line.

    ``a_to_z`` and ``z_to_a``: SVG path data, with gaps where nothing was counted. ``a_to_z_now`` and
    ``z_to_a_now``: the current rates in bit/s; None if unknown.
    """

    a_to_z: str
    z_to_a: str
    a_to_z_now: float | None
    z_to_a_now: float | None
    simulated: bool


def sparkline_of(recent: Recent) -> Sparkline | None:
    """Return the sparkline; None if there are no counts in the last hour.

    Both directions have the same scale, from zero to the highest rate.
    """
    if recent.is_empty:
        return None
    top = max(rate for rate in (*recent.a, *recent.z, 1.0) if rate is not None)
    return Sparkline(
        a_to_z=path_of(recent.a, top),
        z_to_a=path_of(recent.z, top),
        a_to_z_now=_newest(recent.a),
        z_to_a_now=_newest(recent.z),
        simulated=recent.simulated,
    )


def _newest(rates: Sequence[float | None]) -> float | None:
    return next((rate for rate in reversed(rates[-_NOW:]) if rate is not None), None)


def path_of(rates: Sequence[float | None], top: float) -> str:
    """Return SVG path data of the rates, from left to right, on a scale from zero to ``top``.

    It has gaps where a rate is None.
    """
    pace = (WIDTH - 2 * _MARGIN) / max(1, len(rates) - 1)
    parts: list[str] = []
    after_gap = True
    for place, rate in enumerate(rates):
        if rate is None:
            after_gap = True
            continue
        x, y = _MARGIN + place * pace, HEIGHT - _MARGIN - (HEIGHT - 2 * _MARGIN) * rate / top
        # A single point between two gaps becomes a line of length 0, which round line caps show as a dot.
        parts.append(f"M{x:.1f} {y:.1f}h0" if after_gap else f"L{x:.1f} {y:.1f}")
        after_gap = False
    return "".join(parts)
