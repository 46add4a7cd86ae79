"""Every domain error has a text. An error without a text would look like a crash."""

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


def test_every_refusal_has_a_text() -> None:
    assert apps.ready
    found = set(kinds(DomainError)) - ABSTRACT
    assert len(found) > 20
    assert found - {*TEXTS, *wording.registry} == set()
    assert len({kind.code for kind in found}) == len(found)


def test_the_texts_name_only_existing_facts() -> None:
    for kind, text in TEXTS.items():
        named = {name for _, name, _, _ in Formatter().parse(text) if name}
        assert named - set(kind.fact_names()) == set(), kind
