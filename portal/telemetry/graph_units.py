"""What a graph counts."""

from enum import Enum


class Unit(Enum):
    """``name`` as the API takes it, lower case; ``value`` as it writes the rate."""

    BITS = "bit/s"
    PACKETS = "packet/s"

    @property
    def counted(self) -> str:
        """What agents count for it."""
        return "bytes" if self is Unit.BITS else "packets"

    @property
    def factor(self) -> int:
        """How many of it one of what is counted makes."""
        return 8 if self is Unit.BITS else 1
