"""The last hour of a line, small enough for a table: two SVG paths, and the present rates in words."""

from collections.abc import Sequence
from dataclasses import dataclass

from portal.telemetry.last_hour import Recent

WIDTH, HEIGHT = 72, 24
# A little more than half of the stroke, so that the edges do not cut it off.
_MARGIN = 2
# The newest buckets. At least one has a value for a line with reporting routers.
_NOW = 2


@dataclass(frozen=True, slots=True)
class Sparkline:
    """A sparkline.

    ``a_to_z`` and ``z_to_a``: path data with gaps where nothing was counted; ``*_now``: bit/s or None.
    """

    a_to_z: str
    z_to_a: str
    a_to_z_now: float | None
    z_to_a_now: float | None
    simulated: bool


def sparkline_of(recent: Recent) -> Sparkline | None:
    """Return both directions on one scale, from zero to the highest rate; None where nothing was counted."""
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
    """Return path data from left to right on a scale from zero to ``top``.

    It has gaps where nothing was counted.
    """
    pace = (WIDTH - 2 * _MARGIN) / max(1, len(rates) - 1)
    parts: list[str] = []
    after_gap = True
    for place, rate in enumerate(rates):
        if rate is None:
            after_gap = True
            continue
        x, y = _MARGIN + place * pace, HEIGHT - _MARGIN - (HEIGHT - 2 * _MARGIN) * rate / top
        # A single point between two gaps is a line of length 0. Round line caps show it as a dot.
        parts.append(f"M{x:.1f} {y:.1f}h0" if after_gap else f"L{x:.1f} {y:.1f}")
        after_gap = False
    return "".join(parts)
