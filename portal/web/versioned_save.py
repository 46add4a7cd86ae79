"""Save the form of a row, unless somebody else has changed the row since the form was opened."""

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
    """The result. ``refused``: the status of the page that shows ``form`` again, None after success.

    ``version``: the version for that page.
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
    """Call ``operation`` with the row as the argument ``keyword``, and with the cleaned data of ``sent``.

    Raises Http404. The row is locked: of two users who opened the same version, the second is refused.
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
    """Return whether ``operation`` succeeded with the form's data. A refusal is added to the form."""
    if not form.is_valid():
        return False
    try:
        with transaction.atomic():
            operation(**form.cleaned_data)
    except DomainError as error:
        form.refuse(error)
        return False
    return True
