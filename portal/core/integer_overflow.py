"""Numbers that do not fit their PostgreSQL type are refused, and not cut to their low bits.

Parameters are bound at the server, so each goes there in a type of its own. Django names one for whatever it
knows the field of, and takes a bare ``int`` in an expression for an IntegerField: the number in
``F("booked_bps") - 6 * 10**9`` is sent as an ``int4``. psycopg's compiled dumpers write the low 32 bits of it
then, and the server reckons with 1,705,032,704 without a word. Name the type of such a number:
``Value(bps, output_field=BigIntegerField())``.
"""

from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.errors import NumericValueOutOfRange
from psycopg.types.numeric import Int2, Int2BinaryDumper, Int4, Int4BinaryDumper


class FittingInt2Dumper(Int2BinaryDumper):
    """Raises NumericValueOutOfRange, as the server does for a literal of 16 bits."""

    def dump(self, obj: Any) -> Buffer | None:
        return super().dump(_fitting(obj, bits=16))


class FittingInt4Dumper(Int4BinaryDumper):
    """Raises NumericValueOutOfRange, as the server does for a literal of 32 bits."""

    def dump(self, obj: Any) -> Buffer | None:
        return super().dump(_fitting(obj, bits=32))


def refuse_what_does_not_fit() -> None:
    """From the next connection of this process on. Larger types need no care: psycopg itself refuses."""
    psycopg.adapters.register_dumper(Int2, FittingInt2Dumper)
    psycopg.adapters.register_dumper(Int4, FittingInt4Dumper)


def _fitting(number: int, *, bits: int) -> int:
    limit = 1 << (bits - 1)
    if -limit <= number < limit:
        return number
    raise NumericValueOutOfRange(f"{number} does not fit into {bits} bits: name the type of this parameter")
