"""The members of a bandwidth profile (MEF 10.4) in requests, except the CIR."""

from typing import Any

from portal.api.v1.serializers.strict_fields import MAX_SAFE_INTEGER, StrictIntegerField

EIR_HELP = (
    "Excess information rate in bit/s: traffic above the CIR up to this rate is forwarded if the network has"
    " capacity. It is not booked. 0 for none."
)


def burst_field(name: str, **more: Any) -> StrictIntegerField:
    """Return a field for a burst size in bytes. With null, the portal chooses the size."""
    return StrictIntegerField(
        min_value=0,
        max_value=MAX_SAFE_INTEGER,
        allow_null=True,
        help_text=f"{name} in bytes, at least the largest frame. Null lets the portal choose: 10 ms at the"
        " rate, but at least 10 of the largest frames.",
        **more,
    )
