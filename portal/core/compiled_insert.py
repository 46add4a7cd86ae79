"""Rows that are inserted again and again, by a statement compiled once (see portal.core.compiled_query)."""

from functools import cache
from typing import Any, TypeVar

from django.db import connection
from django.db.models import AutoField, Field, Model
from django.db.models.sql import InsertQuery

M = TypeVar("M", bound=Model)


def insert(row: M) -> M:
    """Insert a new row without asking for anything back: a key that the database draws stays unknown here.

    Its errors come where the statement's answer is waited for (portal.core.postgres_pipeline). No signal is
    sent.
    """
    fields, sql = _compiled(type(row))
    values = [field.get_db_prep_save(field.pre_save(row, add=True), connection) for field in fields]
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
    row._state.adding, row._state.db = False, connection.alias
    return row


@cache
def _compiled(model: type[Model]) -> "tuple[list[Field[Any, Any]], str]":
    fields = [field for field in model._meta.local_concrete_fields if not isinstance(field, AutoField)]
    query = InsertQuery(model)
    query.insert_values(fields, [model()])
    ((sql, _),) = query.get_compiler(connection=connection).as_sql()
    return fields, sql
