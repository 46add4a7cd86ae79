"""The rules that other packages impose on writes to the inventory.

The inventory does not know the lines that use its rows. ``portal.vll`` registers their rules when Django
starts (``VllConfig.ready``). Every operation of the inventory applies the rules of its row, and raises
RulesMissing if nobody has registered any. No process can therefore skip the checks (ADR 86).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Model

from portal.accounts.models import User


class RulesMissing(RuntimeError):
    """No rules are registered for a kind of row, so the operation cannot check who needs the row."""


@dataclass(slots=True, kw_only=True)
class Write:
    """A creation or a change of one row.

    ``row``: before the write the row as the caller read it (without an id: it is created), afterwards the
    written row. ``changes``: the new values. ``accept_affected``: the user accepts the effect on lines.
    """

    row: Any
    changes: dict[str, Any]
    user: User
    now: datetime
    accept_affected: bool


class Rules:
    """The rules for one kind of row. A method that a subclass does not override imposes no rule.

    Every method runs in the transaction of the operation, and may raise a DomainError to refuse the write.
    """

    def lock(self, pk: int) -> None:
        """Lock the rows that have to be locked before the row ``pk`` is changed (ADR 76)."""

    @contextmanager
    def writing(self, write: Write) -> Iterator[None]:
        """Enclose a creation or a change. The row is not locked yet when the context begins."""
        yield

    def lock_for_removal(self, row: Any) -> None:
        """Lock the rows that a removal of ``row`` affects. The row is locked, but not yet its key."""

    def users(self, row: Any) -> list[str]:
        """Return the names of the objects that need ``row``. While there are any, it cannot be removed."""
        return []

    def release(self, row: Any, *, now: datetime) -> dict[str, Any]:
        """Release what unused objects still have at ``row``. Return facts for the event of a retirement."""
        return {}

    def retire(self, row: Any) -> None:
        """Delete what a retired row may not have."""


_rules: dict[type[Model], Rules] = {}


def rules_register(model: type[Model], rules: Rules) -> None:
    """Register the rules for the rows of ``model``. Call it in the ``ready`` method of an AppConfig."""
    _rules[model] = rules


def rules_of(model: type[Model]) -> Rules:
    """Return the rules for the rows of ``model``. Raises RulesMissing."""
    if model not in _rules:
        raise RulesMissing(f"no rules are registered for {model._meta.label}")
    return _rules[model]
