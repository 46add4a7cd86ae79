"""An error without words would reach its reader as a crash."""

from collections.abc import Iterator

from django.apps import apps

from portal.core.errors import Conflict, DomainError
from portal.underlay.errors import NotServiceable
from portal.vll import words

ABSTRACT = {Conflict, NotServiceable}


def kinds(base: type[DomainError]) -> Iterator[type[DomainError]]:
    for kind in base.__subclasses__():
        yield kind
        yield from kinds(kind)


def test_every_refusal_has_words() -> None:
    assert apps.ready
    fallback = words.sentence.dispatch(object)
    found = set(kinds(DomainError)) - ABSTRACT
    assert len(found) > 20
    wordless = {k for k in found if words.sentence.dispatch(k) is fallback and k not in words._TEXTS}
    assert wordless == set()
