"""Refuse numbers that do not fit their PostgreSQL type, instead of cutting them to their low bits.

The server binds parameters, so each parameter is sent with a type. Django names the type if it knows the
field, and takes a bare ``int`` in an expression for an IntegerField. It sends the number in ``F("booked_bps")
- 6 * 10**9`` as an ``int4``. The compiled dumpers of psycopg then write the low 32 bits, and the server
silently calculates with 1,705,032,704. Name the type of such a number: ``Value(bps,
output_field=BigIntegerField())``.
"""

from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.errors import NumericValueOutOfRange
from psycopg.types.numeric import Int2, Int2BinaryDumper, Int4, Int4BinaryDumper


class FittingInt2Dumper(Int2BinaryDumper):
    """A dumper for 16 bits. Raises NumericValueOutOfRange, as the server does for a literal."""

    def dump(self, obj: Any) -> Buffer | None:
        return super().dump(_fitting(obj, bits=16))


class FittingInt4Dumper(Int4BinaryDumper):
    """A dumper for 32 bits. Raises NumericValueOutOfRange, as the server does for a literal."""

    def dump(self, obj: Any) -> Buffer | None:
        return super().dump(_fitting(obj, bits=32))


def require_integers_to_fit() -> None:
    """Register the dumpers for new connections of this process. psycopg itself refuses numbers
    above 64 bits.
    """
    psycopg.adapters.register_dumper(Int2, FittingInt2Dumper)
    psycopg.adapters.register_dumper(Int4, FittingInt4Dumper)


def _fitting(number: int, *, bits: int) -> int:
    limit = 1 << (bits - 1)
    if -limit <= number < limit:
        return number
    raise NumericValueOutOfRange(f"{number} does not fit into {bits} bits: name the type of this parameter")
