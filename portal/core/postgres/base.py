"""Django's connection to PostgreSQL; one that leads to a standby is as good as none.

After a failover a connection may go on to a server that answers and takes no writes: made while a proxy still
led there, or kept by a pooler. Django would keep it for as long as it answers.
"""

from types import TracebackType
from typing import Any

from django.db import OperationalError
from django.db.backends.postgresql import base
from django.db.utils import DatabaseErrorWrapper
from django.utils.functional import cached_property
from psycopg import Error
from psycopg.errors import ReadOnlySqlTransaction

# Connections that shall read only may lead to standbys.
_FOR_WRITES = ("read-write", "primary")


class DatabaseWrapper(base.DatabaseWrapper):
    """Where a standby is asked to write (SQLSTATE 25006), the database is away: OperationalError."""

    @cached_property
    def wrap_database_errors(self) -> "_Errors":
        return _Errors(self)

    def is_usable(self) -> bool:
        """Whether the server answers and, where this connection is for writes, takes them.

        Django asks before each request and task that has a kept connection, and after errors.
        """
        if self.connection is None:
            return False
        try:
            with self.connection.cursor() as cursor:
                # Also "on" in recovery (https://www.postgresql.org/docs/current/hot-standby.html).
                (read_only,) = cursor.execute("SHOW transaction_read_only").fetchone()
        except Error:
            return False
        return read_only == "off" or not self.is_for_writes()

    def is_for_writes(self) -> bool:
        """Whether it was asked for a server that takes them."""
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
            # So that it is looked at, and closed, when the request or task is over.
            self.wrapper.errors_occurred = True
            raise OperationalError(*exc_value.args).with_traceback(traceback) from exc_value
        super().__exit__(exc_type, exc_value, traceback)
