"""A database backend that treats a connection to a standby as unusable, and refuses numbers that do not fit.

After a failover, a connection may lead to a server that responds but refuses writes, because of a proxy or a
pooler. Django would keep such a connection as long as the server responds.

With server-side binding, each parameter is sent with a type. Django chooses the type of the field if it knows
the field, and IntegerField for a plain ``int`` in an expression. In ``F("booked_bps") - 6 * 10**9`` the
number is therefore sent as an ``int4``. The compiled dumpers of psycopg then write only the low 32 bits, and
the server calculates with 1,705,032,704, without an error. Set the type of such a number explicitly:
``Value(bps, output_field=BigIntegerField())``.
"""

from types import TracebackType
from typing import Any

import psycopg
from django.db import OperationalError
from django.db.backends.postgresql import base
from django.db.utils import DatabaseErrorWrapper
from django.utils.functional import cached_property
from psycopg import Error
from psycopg.abc import Buffer
from psycopg.errors import NumericValueOutOfRange, ReadOnlySqlTransaction
from psycopg.types.numeric import Int2, Int2BinaryDumper, Int4, Int4BinaryDumper

# The values of ``target_session_attrs`` for connections that must not lead to a standby.
_FOR_WRITES = ("read-write", "primary")


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that raises OperationalError if a standby refuses a write (SQLSTATE 25006)."""

    @cached_property
    def wrap_database_errors(self) -> "_Errors":
        return _Errors(self)

    def is_usable(self) -> bool:
        """Return whether the server responds, and accepts writes if this connection is for writes.

        Django calls this method before it reuses a persistent connection, and after errors.
        """
        if self.connection is None:
            return False
        try:
            with self.connection.cursor() as cursor:
                # The value is also "on" on a standby
                # (https://www.postgresql.org/docs/current/hot-standby.html).
                (read_only,) = cursor.execute("SHOW transaction_read_only").fetchone()
        except Error:
            return False
        return read_only == "off" or not self.is_for_writes()

    def is_for_writes(self) -> bool:
        """Return whether the connection requires a server that accepts writes."""
        options: dict[str, Any] = self.settings_dict["OPTIONS"]
        return options.get("target_session_attrs", "read-write") in _FOR_WRITES


class _Errors(DatabaseErrorWrapper):
    wrapper: DatabaseWrapper

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(exc_value, ReadOnlySqlTransaction) and self.wrapper.is_for_writes():
            # At the end of the request or task, Django then checks the connection and closes it.
            self.wrapper.errors_occurred = True
            raise OperationalError(*exc_value.args).with_traceback(traceback) from exc_value
        super().__exit__(exc_type, exc_value, traceback)


class FittingInt2Dumper(Int2BinaryDumper):
    """A dumper for int2. Raises NumericValueOutOfRange, as the server does for a literal."""

    def dump(self, obj: Any) -> Buffer | None:
        return super().dump(_fitting(obj, bits=16))


class FittingInt4Dumper(Int4BinaryDumper):
    """A dumper for int4. Raises NumericValueOutOfRange, as the server does for a literal."""

    def dump(self, obj: Any) -> Buffer | None:
        return super().dump(_fitting(obj, bits=32))


def _fitting(number: int, *, bits: int) -> int:
    limit = 1 << (bits - 1)
    if -limit <= number < limit:
        return number
    raise NumericValueOutOfRange(f"{number} does not fit into {bits} bits: name the type of this parameter")


# Connections copy the registered dumpers when they are opened, so this module registers them when Django
# imports it. Numbers above 64 bits need no dumper, because psycopg refuses them.
psycopg.adapters.register_dumper(Int2, FittingInt2Dumper)
psycopg.adapters.register_dumper(Int4, FittingInt4Dumper)
