"""Insert rows by a statement that is compiled once per model and number of rows.

Django would compile the SQL of an insert each time (see portal.core.compiled_query).
"""

from functools import cache
from typing import Any, TypeVar

from django.db import connection
from django.db.models import AutoField, Field, Model
from django.db.models.sql import InsertQuery

M = TypeVar("M", bound=Model)


def insert(*rows: M) -> None:
    """Insert new rows of one model in one statement. A key that the database draws stays unknown here.

    Errors of the statement come where the pipeline waits for it (portal.core.postgres_pipeline). No signal is
    sent.
    """
    fields, sql = _compiled(type(rows[0]), len(rows))
    values = [
        field.get_db_prep_save(field.pre_save(row, add=True), connection) for row in rows for field in fields
    ]
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
    for row in rows:
        row._state.adding, row._state.db = False, connection.alias


@cache
def _compiled(model: type[Model], count: int) -> "tuple[list[Field[Any, Any]], str]":
    fields = [field for field in model._meta.local_concrete_fields if not isinstance(field, AutoField)]
    query = InsertQuery(model)
    # For several rows Django may send arrays. Repeating one row's placeholders keeps the values as they are.
    query.insert_values(fields, [model()])
    ((sql, _),) = query.get_compiler(connection=connection).as_sql()
    into, placeholders = sql.rsplit(" VALUES ", 1)
    return fields, f"{into} VALUES {', '.join([placeholders] * count)}"
