"""Refusals of rows: their stored form and their sentences."""

from dataclasses import fields
from functools import cache
from typing import Any

from portal.core.errors import DomainError, TooSoon, errors_with_sentences
from portal.core.reader_zone import stored_text_shown
from portal.core.stored_text import in_english

_SIDES = {"a_end.": "a_", "z_end.": "z_"}


def refusal_record(error: DomainError) -> dict[str, Any]:
    """Return the facts for programs, and the sentence in English for releases that no longer know the
    error.
    """
    with in_english():
        sentence = error.sentence
    column = _column(error.field or getattr(error, "column", ""))
    return {"column": column, "code": error.code, "facts": error.facts, "sentence": sentence}


def sentence(refusal: dict[str, Any]) -> str:
    """Return the sentence in the reader's language, if the facts suffice.

    Facts are stored as JSON, perhaps by an earlier release with other facts. If they do not make a sentence,
    the stored English one is returned.
    """
    kind = _by_code().get(refusal["code"])
    # TooSoon needs a datetime, and JSON has only its text.
    if kind is None or issubclass(kind, TooSoon):
        return stored_text_shown(str(refusal["sentence"]))
    try:
        where = {"field": refusal["column"]} if "field" in {each.name for each in fields(kind)} else {}
        return kind(**refusal["facts"], **where).sentence
    except (AttributeError, LookupError, TypeError, ValueError):
        return stored_text_shown(str(refusal["sentence"]))


@cache
def _by_code() -> dict[str, type[DomainError]]:
    return {kind.code: kind for kind in errors_with_sentences()}


def _column(field: str) -> str:
    """Return the column of a field: the field ``a_end.outer_vlan`` of an order is the column
    ``a_outer_vlan``.
    """
    for of_order, of_table in _SIDES.items():
        if field.startswith(of_order):
            return of_table + field.removeprefix(of_order)
    return field
