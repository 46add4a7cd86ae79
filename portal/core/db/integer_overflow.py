"""Refuse numbers that do not fit their PostgreSQL type, instead of sending only their low bits.

With server-side binding, each parameter is sent with a type. Django chooses the type of the field if it knows
the field, and IntegerField for a plain ``int`` in an expression. In ``F("booked_bps") - 6 * 10**9`` the
number is therefore sent as an ``int4``. The compiled dumpers of psycopg then write only the low 32 bits, and
the server calculates with 1,705,032,704, without an error. Set the type of such a number explicitly:
``Value(bps, output_field=BigIntegerField())``.
"""

from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.errors import NumericValueOutOfRange
from psycopg.types.numeric import Int2, Int2BinaryDumper, Int4, Int4BinaryDumper


class FittingInt2Dumper(Int2BinaryDumper):
    """A dumper for int2. Raises NumericValueOutOfRange, as the server does for a literal."""

    def dump(self, obj: Any) -> Buffer | None:
        return super().dump(_fitting(obj, bits=16))


class FittingInt4Dumper(Int4BinaryDumper):
    """A dumper for int4. Raises NumericValueOutOfRange, as the server does for a literal."""

    def dump(self, obj: Any) -> Buffer | None:
        return super().dump(_fitting(obj, bits=32))


def require_integers_to_fit() -> None:
    """Register the dumpers for new connections of this process.

    Numbers above 64 bits need no dumper, because psycopg refuses them.
    """
    psycopg.adapters.register_dumper(Int2, FittingInt2Dumper)
    psycopg.adapters.register_dumper(Int4, FittingInt4Dumper)


def _fitting(number: int, *, bits: int) -> int:
    limit = 1 << (bits - 1)
    if -limit <= number < limit:
        return number
    raise NumericValueOutOfRange(f"{number} does not fit into {bits} bits: name the type of this parameter")
