"""Insert rows with a compiled statement, which is cached by model, columns and number of rows.

Django compiles the SQL of every insert again (see portal.core.db.compiled_query), and sends every column.
"""

from functools import cache
from typing import Any, TypeVar

from django.db import connection
from django.db.models import NOT_PROVIDED, AutoField, Field, Model
from django.db.models.sql import InsertQuery

M = TypeVar("M", bound=Model)


def insert(*rows: M) -> None:
    """Insert new rows of one model in one statement.

    The instances do not get keys or default values that the database generates. No signal is sent. In a
    pipeline, an error of the statement is raised when the pipeline waits (portal.core.db.sessions).
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
    """Return each column with its database default, or NOT_PROVIDED if the statement must send a value."""
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
    # Django may send arrays for several rows, which changes the values. So compile the statement for one row,
    # and repeat its placeholders.
    query.insert_values([_columns(model)[place][0] for place in places], [model()])
    ((sql, _),) = query.get_compiler(connection=connection).as_sql()
    into, placeholders = sql.rsplit(" VALUES ", 1)
    return f"{into} VALUES {', '.join([placeholders] * count)}"
