"""Insert rows with a statement that is compiled once per model, columns and number of rows.

Django would compile the SQL of each insert again (see portal.core.compiled_query), and send every column.
"""

from functools import cache
from typing import Any, TypeVar

from django.db import connection
from django.db.models import NOT_PROVIDED, AutoField, Field, Model
from django.db.models.sql import InsertQuery

M = TypeVar("M", bound=Model)


def insert(*rows: M) -> None:
    """Insert new rows of one model in one statement.

    The new rows do not learn keys that the database generates, nor the values of expressions that are a
    column's default. No signal is sent. Errors of the statement are raised where the pipeline waits for it
    (portal.core.postgres_pipeline).
    """
    model = type(rows[0])
    columns = _columns(model)
    sent = [
        place
        for place, (field, default) in enumerate(columns)
        for row in rows
        if getattr(row, field.attname) != default
    ]
    places = tuple(dict.fromkeys(sent))
    fields = [columns[place][0] for place in places]
    values = [
        field.get_db_prep_save(field.pre_save(row, add=True), connection) for row in rows for field in fields
    ]
    with connection.cursor() as cursor:
        cursor.execute(_statement(model, places, len(rows)), values)
    for row in rows:
        row._state.adding, row._state.db = False, connection.alias


@cache
def _columns(model: type[Model]) -> "list[tuple[Field[Any, Any], Any]]":
    """Return each column with the value that PostgreSQL fills in, or NOT_PROVIDED if it needs a value."""
    return [
        (field, _database_default(field))
        for field in model._meta.local_concrete_fields
        if not isinstance(field, AutoField)
    ]


def _database_default(field: "Field[Any, Any]") -> Any:
    if field.db_default is not NOT_PROVIDED:
        return field.db_default
    return None if field.null else NOT_PROVIDED


@cache
def _statement(model: type[Model], places: tuple[int, ...], count: int) -> str:
    query = InsertQuery(model)
    # For several rows Django may send arrays. Repeating the placeholders of one row keeps the values
    # unchanged.
    query.insert_values([_columns(model)[place][0] for place in places], [model()])
    ((sql, _),) = query.get_compiler(connection=connection).as_sql()
    into, placeholders = sql.rsplit(" VALUES ", 1)
    return f"{into} VALUES {', '.join([placeholders] * count)}"
