"""Forms for objects that several people may change. Each contains the version of the object that it shows."""

import hashlib
import json
from typing import Any, Self

from django import forms
from django.utils.translation import gettext_lazy as _

from portal.core.errors import DomainError
from portal.web.forms.base import TablerForm

OUTDATED = _(
    "Somebody has changed this since you opened it, so nothing was saved. The fields still hold what "
    "you entered; below each one that differs is the current value. Decide for each, then save again."
)


def digest(text: str) -> str:
    """Return a digest of a text, for a hidden field.

    Browsers would change the line ends of the text itself.
    """
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def it_is_now(value: str) -> str:
    """Return the note next to a field that somebody else has changed since."""
    return _("It is %(value)s now.") % {"value": value} if value else str(_("It is empty now."))


class VersionedForm(TablerForm):
    """A form with cleaned data that are the keywords of an operation.

    The form sends every field, so an old form would overwrite newer values. The page therefore sends
    ``version`` in a hidden field, and the view compares it with the row while the row is locked.
    """

    @classmethod
    def of(cls, row: Any) -> Self:
        """Return the form with the values of ``row``."""
        return cls(initial={name: getattr(row, name) for name in cls().fields if hasattr(row, name)})

    def refuse(self, error: DomainError) -> None:
        """Add the operation's refusal to the field that it names."""
        self.add_error(error.field if error.field in self.fields else None, error.sentence)

    @property
    def version(self) -> str:
        """Return a digest of the values of the fields."""
        return digest(json.dumps(self._written()))

    def is_outdated(self, *, seen: str, now: Self) -> bool:
        """Return whether the form was opened on another version than ``now`` and would change something.

        ``now``: the form with the present values of the row.
        """
        return seen != now.version and bool(self._differing(now))

    def refuse_as_outdated(self, now: Self) -> None:
        """Add the refusal, and to each differing field its value in ``now``."""
        self.add_error(None, OUTDATED)
        for name in self._differing(now):
            value = _in_words(now[name])
            self.add_error(name, it_is_now(value))

    def _differing(self, now: Self) -> list[str]:
        here, there = self._written(), now._written()
        return [name for name in now.initial if here[name] != there[name]]

    def _written(self) -> dict[str, str]:
        return {name: _plainly(self[name].value()) for name in self.fields}


def _plainly(value: Any) -> str:
    """Return the same text for the same choice, in any order of its values."""
    if isinstance(value, list):
        return " ".join(sorted(value))
    return "" if value is None else str(value).strip()


def _in_words(field: forms.BoundField) -> str:
    """Return the value of a field in words; "" for an empty field."""
    value = field.value()
    if isinstance(value, bool):
        return str(_("ticked") if value else _("not ticked"))
    if isinstance(value, list):
        return ", ".join(sorted(value))
    choices = dict(getattr(field.field, "choices", ()))
    return "" if value is None else str(choices.get(value, value))
