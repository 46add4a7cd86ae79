"""SQL statements: run one, read rows with a queryset that is compiled once, insert rows, or delete rows.

Django compiles the SQL of a queryset and of an insert at each use, and an insert sends every column. For
frequent statements, compiling took longer than sending the SQL and reading the rows.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import NOT_PROVIDED, AutoField, Field, Model, QuerySet
from django.db.models.query import get_related_populators
from django.db.models.sql import InsertQuery

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


def delete_locked(rows: QuerySet[Any], *, skip_locked: bool = False) -> int:
    """Delete the rows that still match once they are locked; return their number. Needs a transaction.

    Django's ``delete`` first selects the rows if other tables refer to them, and then deletes them by primary
    key. A row that another session changed in between would be deleted although it no longer matches.
    ``skip_locked``: keep rows that another session has locked, instead of waiting.
    """
    locked = list(rows.select_for_update(skip_locked=skip_locked).values_list("pk", flat=True))
    return int(rows.model.objects.filter(pk__in=locked).delete()[0])


M = TypeVar("M", bound=Model)
# A list of any length is one parameter of the SQL (``is_one_of``).
Value = int | str | UUID | list[int] | list[UUID]
# Statements are compiled with stand-in values from this number on. Real values are far smaller.
_FIRST_STAND_IN = 2_000_000_000


class CompiledQuery(Generic[M]):
    """A function that returns the rows of the queryset ``make(*values, **variant)``.

    The SQL of the queryset must depend only on ``variant``. ``make`` must pass each value unchanged to
    lookups of integers, text or UUIDs, and each list to ``is_one_of``. A list must have at least one value.
    The result is the same as that of Django's ``ModelIterable`` with a compiler; a test compares them.
    """

    def __init__(self, make: Callable[..., QuerySet[M]]) -> None:
        self._make = make
        self._compiled: dict[Hashable, _Compiled[M]] = {}

    def __call__(self, *values: Value, **variant: Hashable) -> list[M]:
        key = (*map(_kind, values), *sorted(variant.items()))
        compiled = self._compiled.get(key)
        if compiled is None:
            stand_ins = [_stand_in(value, _FIRST_STAND_IN + place) for place, value in enumerate(values)]
            compiled = self._compiled[key] = _Compiled(self._make(*stand_ins, **variant), stand_ins)
        return compiled.rows(values)


def _kind(value: Value) -> object:
    return (list, type(value[0])) if isinstance(value, list) else type(value)


def _stand_in(value: Value, number: int) -> Value:
    if isinstance(value, list):
        return [_stand_in(value[0], number)]  # type: ignore[return-value]
    return UUID(int=number) if isinstance(value, UUID) else type(value)(number)


class _Compiled(Generic[M]):
    def __init__(self, queryset: QuerySet[M], stand_ins: Sequence[Value]) -> None:
        compiler = queryset.query.get_compiler(connection=connection)
        self._sql, self._params = compiler.as_sql()
        self._places = [
            (at, stand_ins.index(param)) for at, param in enumerate(self._params) if param in stand_ins
        ]
        if {place for _, place in self._places} != set(range(len(stand_ins))):
            raise ValueError("each value of a recurring query has to be a parameter of its SQL")
        select, info = compiler.select, compiler.klass_info
        assert info is not None  # noqa: S101 - a queryset of models
        self._model: type[M] = info["model"]
        fields = info["select_fields"]
        self._columns = slice(fields[0], fields[-1] + 1)
        self._names = [column[0].target.attname for column in select[self._columns]]
        # django-stubs describes Django 6.1, where this function takes more arguments.
        self._related = get_related_populators(info, select, DEFAULT_DB_ALIAS)  # type: ignore[call-arg]
        self._annotations = dict(compiler.annotation_col_map or {})
        self._converters = [
            (at, converter, expression)
            for at, (found, expression) in compiler.get_converters([column[0] for column in select]).items()
            for converter in found
        ]

    def rows(self, values: Sequence[Value]) -> list[M]:
        params = list(self._params)
        for at, place in self._places:
            params[at] = values[place]
        with connection.cursor() as cursor:
            cursor.execute(self._sql, params)
            return [self._instance(list(row)) for row in cursor.fetchall()]

    def _instance(self, row: list[Any]) -> M:
        # ``from_replica`` exchanges the connection and not its alias, so rows belong to the default alias.
        for at, converter, expression in self._converters:
            row[at] = converter(row[at], expression, connection)
        instance = self._model.from_db(DEFAULT_DB_ALIAS, self._names, row[self._columns])
        for related in self._related:
            related.populate(row, instance)
        for name, at in self._annotations.items():
            setattr(instance, name, row[at])
        return instance


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
