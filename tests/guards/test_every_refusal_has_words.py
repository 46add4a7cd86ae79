"""An error without words would reach its reader as a crash."""

from collections.abc import Iterator
from string import Formatter

from django.apps import apps

from portal.core.errors import TEXTS, Conflict, DomainError, TooSoon, wording
from portal.underlay.errors import TransportRefused

ABSTRACT = {Conflict, TooSoon, TransportRefused}


def kinds(base: type[DomainError]) -> Iterator[type[DomainError]]:
    for kind in base.__subclasses__():
        yield kind
        yield from kinds(kind)


def test_every_refusal_has_words() -> None:
    assert apps.ready
    found = set(kinds(DomainError)) - ABSTRACT
    assert len(found) > 20
    assert found - {*TEXTS, *wording.registry} == set()
    assert len({kind.code for kind in found}) == len(found)


def test_the_words_name_facts_that_there_are() -> None:
    for kind, text in TEXTS.items():
        named = {name for _, name, _, _ in Formatter().parse(text) if name}
        assert named - set(kind.fact_names()) == set(), kind
