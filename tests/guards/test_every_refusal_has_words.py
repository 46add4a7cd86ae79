"""Every domain error has a text. An error without a text would look like a crash."""

from string import Formatter

from django.apps import apps

from portal.core.errors import error_types
from portal.vll.errors import RateOutOfRange

_SENTENCE = {"text", "sentence", "obstacle"}


def test_every_refusal_has_its_own_text() -> None:
    """An error with the text of another error would mislead."""
    assert apps.ready
    found = list(error_types())
    assert len(found) > 100
    for kind in found:
        defines = next(each for each in kind.__mro__ if _SENTENCE & vars(each).keys())
        assert defines in {kind, RateOutOfRange}, kind
    assert len({kind.code for kind in found}) == len(found)


def test_the_texts_name_only_existing_facts() -> None:
    for kind in error_types():
        text = str(kind.text) or str(getattr(kind, "obstacle", ""))
        named = {name for _, name, _, _ in Formatter().parse(text) if name}
        assert named - set(kind.fact_names()) == set(), kind
