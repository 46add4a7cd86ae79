"""The units of graphs."""

from enum import Enum


class Unit(Enum):
    """``name`` as the API takes it, lower case; ``value`` as it writes the rate."""

    BITS = "bit/s"
    PACKETS = "packet/s"

    @property
    def counted(self) -> str:
        """The figure that agents count for it."""
        return "bytes" if self is Unit.BITS else "packets"

    @property
    def factor(self) -> int:
        """The number of units that one of what is counted makes."""
        return 8 if self is Unit.BITS else 1
