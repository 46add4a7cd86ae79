"""What stands against a row, as it is kept and as it is read."""

from typing import Any

from django.utils.translation import gettext as _

from portal.core.errors import TEXTS, DomainError, TooSoon
from portal.core.stored_text import in_english

_SIDES = {"a_end.": "a_", "z_end.": "z_"}


def kept(error: DomainError) -> dict[str, Any]:
    """The facts for programs, and the sentence in English for whoever has no words for these any more."""
    with in_english():
        sentence = error.sentence
    column = _column(error.field or getattr(error, "column", ""))
    return {"column": column, "code": error.code, "facts": error.facts, "sentence": sentence}


def sentence(refusal: dict[str, Any]) -> str:
    """For a reader, in their language where the words are a text with the facts in it."""
    kind = _KINDS.get(refusal["code"]) or _known().get(refusal["code"])
    if kind is None or issubclass(kind, TooSoon):
        return str(refusal["sentence"])
    return _(TEXTS[kind]).format(**refusal["facts"])


def _known() -> dict[str, type[DomainError]]:
    """Filled when it is asked first: by then all apps have told their words."""
    _KINDS.update({kind.code: kind for kind in TEXTS})
    return _KINDS


_KINDS: dict[str, type[DomainError]] = {}


def _column(field: str) -> str:
    """``a_end.outer_vlan`` of an order is the column ``a_outer_vlan``."""
    for of_order, of_table in _SIDES.items():
        if field.startswith(of_order):
            return of_table + field.removeprefix(of_order)
    return field
