"""Saving of the form of a row, unless somebody else has changed the row since the form was opened."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.http import QueryDict
from django.shortcuts import get_object_or_404

from portal.core.errors import DomainError
from portal.web.forms.version_field import VersionedForm

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
