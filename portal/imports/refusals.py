"""The refusals of rows: the form in which they are stored, and their sentences."""

from dataclasses import fields
from functools import cache
from typing import Any

from portal.core.errors import DomainError, TooSoon, error_types
from portal.core.reader_zone import stored_text_shown
from portal.core.stored_text import in_english

_SIDES = {"a_end.": "a_", "z_end.": "z_"}


def refusal_record(error: DomainError) -> dict[str, Any]:
    """Return a refusal in the form in which it is stored: facts for programs, and an English sentence.

    The sentence is for releases that do not know the error.
    """
    with in_english():
        sentence = error.sentence
    column = _column(error.field or getattr(error, "column", ""))
    return {"column": column, "code": error.code, "facts": error.facts, "sentence": sentence}


def sentence(refusal: dict[str, Any]) -> str:
    """Return the sentence of a stored refusal in the reader's language.

    The facts are stored as JSON. Another release may have stored other facts. If no sentence can be made from
    the stored facts, return the stored English sentence.
    """
    kind = _by_code().get(refusal["code"])
    # The facts of TooSoon contain a datetime. JSON has stored only its text.
    if kind is None or issubclass(kind, TooSoon):
        return stored_text_shown(str(refusal["sentence"]))
    try:
        where = {"field": refusal["column"]} if "field" in {each.name for each in fields(kind)} else {}
        return kind(**refusal["facts"], **where).sentence
    except (AttributeError, LookupError, TypeError, ValueError):
        return stored_text_shown(str(refusal["sentence"]))


@cache
def _by_code() -> dict[str, type[DomainError]]:
    return {kind.code: kind for kind in error_types()}


def _column(field: str) -> str:
    """Return the column for a field of an operation: ``a_end.outer_vlan`` of an order is ``a_outer_vlan``."""
    for of_order, of_table in _SIDES.items():
        if field.startswith(of_order):
            return of_table + field.removeprefix(of_order)
    return field
