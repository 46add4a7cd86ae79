"""The units of graphs."""

from enum import Enum


class Unit(Enum):
    """A unit. ``name``: as in the API, lower case. ``value``: the notation of the rate."""

    BITS = "bit/s"
    PACKETS = "packet/s"

    @property
    def counted(self) -> str:
        """The counter for this unit."""
        return "bytes" if self is Unit.BITS else "packets"

    @property
    def factor(self) -> int:
        """The number of units per counted item."""
        return 8 if self is Unit.BITS else 1
