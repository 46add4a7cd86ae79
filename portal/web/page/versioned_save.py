"""Forms that refuse to overwrite a newer version of a row, and saving with such a form."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from django import forms
from django.db import transaction
from django.db.models import QuerySet
from django.http import QueryDict
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext_lazy as _

from portal.core.errors import DomainError
from portal.web.fields.base import TablerForm

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


UNPROCESSABLE, CONFLICT = 422, 409


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """The result of ``save``.

    ``refused``: None after success; otherwise the HTTP status of the page that shows ``form`` again.
    ``version``: the version of the row for that page.
    """

    row: Any
    form: VersionedForm
    version: str
    refused: int | None


def save(
    *,
    rows: QuerySet[Any],
    pk: int,
    form: type[VersionedForm],
    sent: QueryDict,
    operation: Callable[..., Any],
    keyword: str,
) -> Saved:
    """Call ``operation`` with the row as the argument ``keyword``, and with the form's ``cleaned_data``.

    ``sent``: the submitted form. If two users have opened the same version, the user who saves second gets an
    error. The row is locked for this check. Raises Http404 if there is no such row.
    """
    seen = sent.get("version", "")
    with transaction.atomic():
        row = get_object_or_404(rows.select_for_update(of=("self",), no_key=True), pk=pk)
        now = form.of(row)
        written = form(sent, initial=now.initial)
        if written.is_outdated(seen=seen, now=now):
            written.refuse_as_outdated(now)
            return Saved(row=row, form=written, version=now.version, refused=CONFLICT)
        done = do(written, partial(operation, **{keyword: row}))
        return Saved(row=row, form=written, version=seen, refused=None if done else UNPROCESSABLE)


def do(form: VersionedForm, operation: Callable[..., Any]) -> bool:
    """Call ``operation`` with the form's ``cleaned_data``. Return whether it succeeded.

    A DomainError is added to the form.
    """
    if not form.is_valid():
        return False
    try:
        with transaction.atomic():
            operation(**form.cleaned_data)
    except DomainError as error:
        form.refuse(error)
        return False
    return True
