"""Forms that change what others may be changing too: each says which version of it it shows."""

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
    """A digest in place of a text in a hidden field, where browsers would write its ends of lines anew."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def it_is_now(value: str) -> str:
    """The note beside a field that somebody else has changed meanwhile."""
    return _("It is %(value)s now.") % {"value": value} if value else str(_("It is empty now."))


class VersionedForm(TablerForm):
    """A form whose cleaned data are an operation's keywords.

    It sends every field, and would bring back what it was opened with. A page of it sends ``version`` along,
    hidden, and who writes asks under the row's lock whether the row still says that.
    """

    @classmethod
    def of(cls, row: Any) -> Self:
        """The form with what ``row`` says."""
        return cls(initial={name: getattr(row, name) for name in cls().fields if hasattr(row, name)})

    def refuse(self, error: DomainError) -> None:
        """Put the operation's refusal beside the field that it names."""
        self.add_error(error.field if error.field in self.fields else None, error.sentence)

    @property
    def version(self) -> str:
        """A digest of what stands in the fields."""
        return digest(json.dumps(self._written()))

    def is_outdated(self, *, seen: str, now: Self) -> bool:
        """Whether it was opened on another version than ``now``, the form as the row fills it, and asks for
        anything else than is there."""
        return seen != now.version and bool(self._differing(now))

    def refuse_as_outdated(self, now: Self) -> None:
        """Say so, and beside each field that differs what it says in ``now``."""
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
    """The same text for the same choice, whatever the order that it comes in."""
    if isinstance(value, list):
        return " ".join(sorted(value))
    return "" if value is None else str(value).strip()


def _in_words(field: forms.BoundField) -> str:
    """The value of a field in words; "" where it is empty."""
    value = field.value()
    if isinstance(value, bool):
        return str(_("ticked") if value else _("not ticked"))
    if isinstance(value, list):
        return ", ".join(sorted(value))
    choices = dict(getattr(field.field, "choices", ()))
    return "" if value is None else str(choices.get(value, value))
