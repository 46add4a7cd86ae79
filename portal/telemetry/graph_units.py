"""The units of graphs."""

from enum import Enum


class Unit(Enum):
    """A unit. The API uses ``name`` in lower case; ``value`` is the unit of the rate."""

    BITS = "bit/s"
    PACKETS = "packet/s"

    @property
    def counted(self) -> str:
        """The counter that this unit is computed from: ``bytes`` or ``packets``."""
        return "bytes" if self is Unit.BITS else "packets"

    @property
    def factor(self) -> int:
        """The factor from counts to the unit: 8 bits per byte, 1 packet per packet."""
        return 8 if self is Unit.BITS else 1
