"""Run one SQL statement, and return its rows or the number of rows that it changed."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection

Parameters = Sequence[Any] | Mapping[str, Any] | None


def rows_of(statement: str, parameters: Parameters = None) -> list[Any]:
    """Run a statement and return its rows as tuples."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        rows: list[Any] = cursor.fetchall()
    return rows


def execute(statement: str, parameters: Parameters = None) -> int:
    """Run a statement and return the number of rows that it changed."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        changed: int = cursor.rowcount
    return changed
