"""The members of a bandwidth profile (MEF 10.4) beside the CIR, as they come in."""

from typing import Any

from portal.api.v1.serializers.strict_fields import MAX_SAFE_INTEGER, StrictIntegerField

EIR_HELP = (
    "Excess information rate in bit/s: forwarded beyond the CIR where there is room; never booked."
    " 0 for none."
)


def burst_field(name: str, **more: Any) -> StrictIntegerField:
    """A burst size in bytes; null leaves the choice to the portal."""
    return StrictIntegerField(
        min_value=0,
        max_value=MAX_SAFE_INTEGER,
        allow_null=True,
        help_text=f"{name} in bytes, at least the largest frame; null: 10 ms at its rate, at least 10.",
        **more,
    )
