"""The months of a VLL as rows of a table."""

from collections.abc import Iterator
from typing import Any

from portal.vll.models import Vll

_TIMES = ("availability", "known_ratio", "up_s", "down_s", "unknown_s", "maintenance_s")
_LOSS = ("sent", "policed", "delivered", "loss_ratio", "bound_ratio")
_P95 = {"in": "in_bps", "out": "out_bps", "max": "max_bps", "missing": "missing"}


def month_rows(vll: Vll, months: list[dict[str, Any]]) -> Iterator[list[object]]:
    """A heading, then a row per month; seconds, frames and bit/s, None where nothing was measured."""
    yield [
        "month",
        "vll",
        "description",
        *_TIMES,
        *(f"{way}_{name}" for way in ("a_to_z", "z_to_a") for name in _LOSS),
        "compared",
        "compared_missing",
        "compared_step_s",
        *(f"{end}_p95_{name}" for end in ("a", "z") for name in _P95.values()),
        "a_undecided",
        "z_undecided",
        "p95_corrected_at",
    ]
    for each in months:
        frozen = each["p95"] or {}
        yield [
            each["month"],
            str(vll.pk),
            vll.description,
            *(each["availability"][name] for name in _TIMES),
            *(each["loss"][way][name] for way in ("a_to_z", "z_to_a") for name in _LOSS),
            each["loss"]["compared"],
            each["loss"]["missing"],
            each["loss"]["step_s"],
            *(frozen.get(f"{end}_end", {}).get(name) for end in ("a", "z") for name in _P95),
            *(each["undecided"].get(end, 0) for end in ("a", "z")),
            frozen["frozen_at"].isoformat() if frozen.get("earlier") else None,
        ]
