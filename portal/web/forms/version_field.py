"""Forms for objects that several users may change at the same time.

Such a form contains the version of the object that it shows.
"""

import hashlib
import json
from typing import Any, Self

from django import forms
from django.utils.translation import gettext_lazy as _

from portal.core.errors import DomainError
from portal.web.forms.base import TablerForm

OUTDATED = _(
    "Somebody has changed this since you opened it, so nothing was saved. The fields still show what "
    "you entered; below each one that differs is the current value. Decide for each, then save again."
)


def digest(text: str) -> str:
    """Return a digest of a text, for a hidden field.

    The text itself cannot be used, because browsers change line breaks.
    """
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def it_is_now(value: str) -> str:
    """Return the note next to a field that somebody else has changed. ``value``: the current value."""
    return _("It is %(value)s now.") % {"value": value} if value else str(_("It is empty now."))


class VersionedForm(TablerForm):
    """A form whose ``cleaned_data`` are the arguments of an operation.

    The form submits all fields. A form that was opened before another user's change would therefore overwrite
    newer values. To prevent this, a hidden field contains ``version``, and the view compares it with the row
    while the row is locked.
    """

    @classmethod
    def of(cls, row: Any) -> Self:
        """Return a form with the values of ``row`` as initial values."""
        return cls(initial={name: getattr(row, name) for name in cls().fields if hasattr(row, name)})

    def refuse(self, error: DomainError) -> None:
        """Add an error of the operation to the field that it names."""
        self.add_error(error.field if error.field in self.fields else None, error.sentence)

    @property
    def version(self) -> str:
        """A digest of the values of all fields."""
        return digest(json.dumps(self._written()))

    def is_outdated(self, *, seen: str, now: Self) -> bool:
        """Return whether somebody else has changed the row and the form would overwrite current values.

        ``seen``: the version when the form was opened. ``now``: a form with the current values of the row.
        """
        return seen != now.version and bool(self._differing(now))

    def refuse_as_outdated(self, now: Self) -> None:
        """Add an error to the form, and the current value to each field that differs from ``now``."""
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
    """Return a field's value as text for comparison. The order of several values does not matter."""
    if isinstance(value, list):
        return " ".join(sorted(value))
    return "" if value is None else str(value).strip()


def _in_words(field: forms.BoundField) -> str:
    """Return a field's value as text for users; "" for an empty field."""
    value = field.value()
    if isinstance(value, bool):
        return str(_("ticked") if value else _("not ticked"))
    if isinstance(value, list):
        return ", ".join(sorted(value))
    choices = dict(getattr(field.field, "choices", ()))
    return "" if value is None else str(choices.get(value, value))
