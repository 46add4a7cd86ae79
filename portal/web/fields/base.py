"""The base of all forms; forms that refuse to overwrite a newer version of a row."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from django import forms, template
from django.db import transaction
from django.db.models import QuerySet
from django.forms import BoundField
from django.http import QueryDict
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext_lazy as _

from portal.core.errors import DomainError
from portal.core.plain_text import plain_line, plain_lines


class LookupField(forms.CharField):
    """A field for a text to search for. The text is never stored, so all characters are valid."""


class TablerForm(forms.Form):
    """A form with the portal's design that accepts only plain text.

    A stored text that the user has not changed is accepted even if it is not plain. Otherwise the user could
    not change other fields. When the form is shown again, the first field with an error has the focus.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            field.widget.attrs.setdefault("class", class_of(field.widget))
            if _is_kept_text(field):
                field.validators.append(partial(self._plain, name))

    def full_clean(self) -> None:
        super().full_clean()
        first = next((name for name in self.fields if name in self.errors), None)
        if first is not None:
            self.fields[first].widget.attrs["autofocus"] = True

    def refuse(self, error: DomainError) -> None:
        """Add an error of an operation to the field that it names, or to the form if it has no such field."""
        self.add_error(error.field if error.field in self.fields else None, error.sentence)

    def submit(self, operation: Callable[..., Any]) -> Any:
        """Call ``operation`` with ``cleaned_data``, and return its result.

        Return None if the form is not valid, or if the operation refuses. The form then has the errors.
        """
        if not self.is_valid():
            return None
        try:
            return operation(**self.cleaned_data)
        except DomainError as error:
            self.refuse(error)
            return None

    def _plain(self, name: str, text: str) -> None:
        field, bound = self.fields[name], self[name]
        if field.has_changed(bound.initial, bound.data):
            plain = plain_lines if isinstance(field.widget, forms.Textarea) else plain_line
            plain(text)


def _is_kept_text(field: forms.Field) -> bool:
    """Return whether the field's text is stored and shown, so that it must be plain text.

    Search texts are not stored, and passwords are not shown.
    """
    never_shown = isinstance(field, LookupField) or isinstance(field.widget, forms.PasswordInput)
    return isinstance(field, forms.CharField) and not never_shown


def class_of(widget: forms.Widget) -> str:
    """Return Tabler's CSS class for a widget."""
    if isinstance(widget, forms.CheckboxInput):
        return "form-check-input"
    return "form-select" if isinstance(widget, forms.Select) else "form-control"


register = template.Library()


@register.filter
def styled(field: BoundField) -> BoundField:
    """Return a field of a package's form with the portal's CSS classes.

    The placeholder, which repeats the label, is removed.
    """
    field.field.widget.attrs.setdefault("class", class_of(field.field.widget))
    field.field.widget.attrs.pop("placeholder", None)
    return field


@register.filter
def focused(field: BoundField) -> BoundField:
    """Return ``field`` with the attribute ``autofocus``, so that it has the focus when the page opens."""
    field.field.widget.attrs["autofocus"] = True
    return field


@register.filter
def of(values: Mapping[Any, Any], key: Any) -> Any:
    """Return the value of a key; None if the key does not exist. The key may be a variable:
    ``{{ names|of:row.pk }}``.
    """
    return values.get(key)


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
        written.submit(transaction.atomic(partial(operation, **{keyword: row})))
        refused = UNPROCESSABLE if written.errors else None
        return Saved(row=row, form=written, version=seen, refused=refused)
