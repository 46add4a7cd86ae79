"""Limits of the inventory's numbers and names. The database has the same limits as constraints."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from portal.inventory.errors import NotAnInterfaceName, OutOfRange
from portal.inventory.models.port import MAX_OVERSUBSCRIPTION

_MAX_RATE = 10**15
# field: (smallest, largest); rates in bit/s, sizes in bytes, coordinates in degrees.
LIMITS: dict[str, tuple[int, int]] = {
    "speed_bps": (1, _MAX_RATE),
    "bookable_bps": (0, _MAX_RATE),
    "oversubscription_percent": (1, MAX_OVERSUBSCRIPTION),
    "max_frame": (64, 65535),
    "approve_up_to_bps": (0, _MAX_RATE),
    "cooling_off_s": (0, 90 * 86400),
    "cores": (1, 1024),
    "underlay_table": (0, 2**32 - 2),
    "line_test_pps": (100, 10**6),
    "a_metric": (1, 2**24 - 1),
    "z_metric": (1, 2**24 - 1),
    "a_ip_mtu": (68, 65535),
    "z_ip_mtu": (68, 65535),
    "latitude": (-90, 90),
    "longitude": (-180, 180),
}
_INTERFACES = ("interface", "a_interface", "z_interface")
_INTERFACE = re.compile(r"[\x21-\x7e]{1,63}\Z")


def is_interface_name(name: str) -> bool:
    """Return whether a port or a link can have this name: 1 to 63 visible ASCII characters."""
    return _INTERFACE.match(name) is not None


def check_limits(values: Mapping[str, Any]) -> None:
    """Check all values. Raises OutOfRange or NotAnInterfaceName for the first invalid one."""
    for field, value in values.items():
        if value is not None and field in LIMITS:
            minimum, maximum = LIMITS[field]
            if not minimum <= value <= maximum:
                number = float(value) if isinstance(value, Decimal) else value
                raise OutOfRange(field=field, value=number, minimum=minimum, maximum=maximum)
        if field in _INTERFACES and not is_interface_name(value):
            raise NotAnInterfaceName(field=field, value=value)
