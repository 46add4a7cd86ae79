"""A database backend that treats a connection to a standby as unusable.

After a failover, a connection may lead to a server that responds but refuses writes, because of a proxy or a
pooler. Django would keep such a connection as long as the server responds.
"""

from types import TracebackType
from typing import Any

from django.db import OperationalError
from django.db.backends.postgresql import base
from django.db.utils import DatabaseErrorWrapper
from django.utils.functional import cached_property
from psycopg import Error
from psycopg.errors import ReadOnlySqlTransaction

# The values of ``target_session_attrs`` for connections that must not lead to a standby.
_FOR_WRITES = ("read-write", "primary")


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that raises OperationalError if a standby refuses a write (SQLSTATE 25006)."""

    @cached_property
    def wrap_database_errors(self) -> "_Errors":
        return _Errors(self)

    def is_usable(self) -> bool:
        """Return whether the server responds. If this connection is for writes, the server must accept
        writes.

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
