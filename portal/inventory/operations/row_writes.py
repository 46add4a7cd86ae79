"""The common part of creating, changing and removing rows of any model."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import Model

from portal.accounts.models import User
from portal.core.errors import DomainError
from portal.core.integrity_errors import integrity_errors_as
from portal.events.outbox import announce
from portal.inventory.errors import InUse
from portal.inventory.field_limits import check_limits

Row = TypeVar("Row", bound=Model)
Refusals = Mapping[str, Callable[[], DomainError]]
_NAMED = 5


def row_create(row: Row, *, kind: str, refusals: Refusals, user: User, now: datetime) -> Row:
    """Insert ``row`` and announce ``<kind>.created``.

    If a constraint is violated, raise the error that ``refusals`` maps it to.
    """
    check_limits({field.name: getattr(row, field.attname) for field in row._meta.concrete_fields})
    with transaction.atomic():
        with integrity_errors_as(refusals):
            row.save(force_insert=True)
        data = {"id": row.pk, "name": str(row)}
        announce(f"{kind}.created", now=now, actor=user.username, router_id=_router_id(row), data=data)
    return row


def row_change(
    row: Row, changes: Mapping[str, Any], *, kind: str, refusals: Refusals, user: User, now: datetime
) -> Row:
    """Write ``changes`` to a row that the caller has locked, and announce the values that differ.

    If a constraint is violated, raise the error that ``refusals`` maps it to.
    """
    check_limits(changes)
    before = {name: getattr(row, name) for name in changes}
    changed = {name: value for name, value in changes.items() if before[name] != value}
    if not changed:
        return row
    for name, value in changed.items():
        setattr(row, name, value)
    with integrity_errors_as(refusals):
        row.save(update_fields=list(changed))
    data = {
        "id": row.pk,
        "name": str(row),
        "changes": {name: [_plain(before[name]), _plain(value)] for name, value in changed.items()},
    }
    announce(f"{kind}.changed", now=now, actor=user.username, router_id=_router_id(row), data=data)
    return row


def row_remove(row: Model, *, kind: str, user: User, now: datetime) -> None:
    """Delete an unused row, and announce ``<kind>.removed``."""
    data, router_id = {"id": row.pk, "name": str(row)}, _router_id(row)
    row.delete()
    announce(f"{kind}.removed", now=now, actor=user.username, router_id=router_id, data=data)


def in_use(what: str, name: str, users: list[str]) -> InUse:
    """Return the error that names the first few of ``users``."""
    return InUse(what=what, name=name, used_by=users[:_NAMED], count=len(users))


def _router_id(row: Model) -> int | None:
    if row._meta.label == "inventory.Router":
        return int(row.pk)
    return getattr(row, "router_id", None)


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | str) else str(value)
