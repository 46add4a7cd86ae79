"""The common part of creating, changing and removing rows of the inventory. It applies the rules of lines."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import Model, ProtectedError, UniqueConstraint

from portal.accounts.models import Customer, User
from portal.core.errors import DomainError, integrity_errors_as
from portal.events.announcements import announce
from portal.inventory.errors import InUse, ValueTaken
from portal.inventory.kinds import KIND_OF, check_limits
from portal.inventory.models import Router
from portal.inventory.rules import Write, rules_of

Row = TypeVar("Row", bound=Model)
# For each name of a constraint, a function that creates the error for its violation.
Refusals = dict[str, Callable[[], DomainError]]
_NONE: Refusals = {}
_NAMED = 5


@contextmanager
def writing(
    row: Any, changes: dict[str, Any], *, user: User, now: datetime, accept_affected: bool = False
) -> Iterator[Write]:
    """Apply the rules of the row's kind before and after the write in this context.

    The context begins before the caller locks the row, because the rules may lock rows that come first.
    """
    write = Write(row=row, changes=changes, user=user, now=now, accept_affected=accept_affected)
    with rules_of(type(row)).writing(write):
        yield write


def row_create(write: Write, row: Row, *, refusals: Refusals = _NONE) -> Row:
    """Insert the new row of ``write`` and announce ``<kind>.created``. Raises ValueTaken, OutOfRange.

    ``refusals``: the errors for other violated constraints.
    """
    check_limits({field.name: getattr(row, field.attname) for field in row._meta.concrete_fields})
    with transaction.atomic():
        with integrity_errors_as(_taken(row) | refusals):
            row.save(force_insert=True)
        _announce("created", row, user=write.user, now=write.now)
    return row


def row_change(write: Write, locked: Row, *, refusals: Refusals = _NONE) -> Row:
    """Apply ``write.changes`` to a row that the caller has locked, and announce the values that differ.

    ``refusals``: the errors for other violated constraints. Raises ValueTaken, OutOfRange.
    """
    write.row = locked
    check_limits(write.changes)
    before = {name: getattr(locked, name) for name in write.changes}
    changed = {name: value for name, value in write.changes.items() if before[name] != value}
    if not changed:
        return locked
    for name, value in changed.items():
        setattr(locked, name, value)
    with integrity_errors_as(_taken(locked) | refusals):
        locked.save(update_fields=list(changed))
    differences = {name: [_plain(before[name]), _plain(value)] for name, value in changed.items()}
    _announce("changed", locked, user=write.user, now=write.now, changes=differences)
    return locked


def row_remove(
    locked: Model,
    *,
    used_by: Sequence[str],
    user: User,
    now: datetime,
    retire: Callable[[], object] | None = None,
) -> None:
    """Delete a row, and announce ``<kind>.removed``. Raises InUse while the row is in use.

    ``used_by``: the names of the rows of the inventory that need the row. A row with a history cannot be
    deleted. ``retire`` then keeps it so that nobody can use it any more, and ``<kind>.retired`` is announced.
    """
    rules = rules_of(type(locked))
    if users := [*used_by, *rules.users(locked)]:
        raise in_use(locked, users)
    facts, pk = rules.release(locked, now=now), locked.pk
    try:
        with transaction.atomic():
            locked.delete()
            locked.pk = pk
            _announce("removed", locked, user=user, now=now)
    except ProtectedError:
        if retire is None:
            raise
        rules.retire(locked)
        retire()
        _announce("retired", locked, user=user, now=now, **facts)


def in_use(row: Model, users: Sequence[str]) -> InUse:
    """Return the error that names the first few of ``users``."""
    return InUse(what=KIND_OF[type(row)].name, name=str(row), used_by=list(users[:_NAMED]), count=len(users))


def _taken(row: Model) -> Refusals:
    """Return the errors for values of the row that another row of its kind already has."""
    kind, constraints = KIND_OF[type(row)], row._meta.constraints
    named = {each.fields[0]: each.name for each in constraints if isinstance(each, UniqueConstraint)}
    return {
        named.get(field, f"{row._meta.db_table}_{field}_key"): partial(
            ValueTaken, what=kind.name, value=str(getattr(row, field)), field=field
        )
        for field in kind.unique
    }


def _announce(what: str, row: Model, *, user: User, now: datetime, **facts: Any) -> None:
    router_id = row.pk if isinstance(row, Router) else getattr(row, "router_id", None)
    # No event of a customer except its retirement belongs to the customer: the customer does not see it.
    customer_id = row.pk if isinstance(row, Customer) and what == "retired" else None
    announce(
        f"{KIND_OF[type(row)].name}.{what}",
        now=now,
        actor=user.username,
        customer_id=customer_id,
        router_id=router_id,
        data={"id": row.pk, "name": str(row), **facts},
    )


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | str) else str(value)
