"""The figures of VLLs by month, as rows of CSV files."""

from typing import Any

from portal.vll.models import Vll

_TIMES = ("availability", "known_ratio", "up_s", "down_s", "unknown_s", "maintenance_s")
_LOSS = ("sent", "policed", "delivered", "loss_ratio", "bound_ratio")
_P95 = {"in": "in_bps", "out": "out_bps", "max": "max_bps", "missing": "missing"}


HEADING = [
    *("month", "vll", "customer", "description"),
    *_TIMES,
    *(f"{way}_{name}" for way in ("a_to_z", "z_to_a") for name in _LOSS),
    *("compared", "compared_missing", "compared_step_s"),
    *(f"{end}_p95_{name}" for end in ("a", "z") for name in _P95.values()),
    *("a_undecided", "z_undecided", "p95_corrected_at"),
]


def month_row(vll: Vll, figures: dict[str, Any]) -> list[object]:
    """Return the figures of a VLL in a month as a row with the columns ``HEADING``.

    Times are in seconds, counts in frames, rates in bit/s. A value that was not measured is None.
    """
    frozen = figures["p95"] or {}
    return [
        figures["month"],
        str(vll.pk),
        vll.customer.name,
        vll.description,
        *(figures["availability"][name] for name in _TIMES),
        *(figures["loss"][way][name] for way in ("a_to_z", "z_to_a") for name in _LOSS),
        figures["loss"]["compared"],
        figures["loss"]["missing"],
        figures["loss"]["step_s"],
        *(frozen.get(f"{end}_end", {}).get(name) for end in ("a", "z") for name in _P95),
        *(figures["undecided"].get(end, 0) for end in ("a", "z")),
        frozen["frozen_at"].isoformat() if frozen.get("earlier") else None,
    ]
