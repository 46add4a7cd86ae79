"""Template filters for activation tests of a line."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from django import template
from django.utils.translation import gettext as _

from portal.core.units import decimal_text
from portal.vll.activation_test_sentences import activation_test_sentence, failure_sentence
from portal.vll.models import ActivationTest

register = template.Library()


class SizeRow(NamedTuple):
    """A frame size in bytes, and for each direction a text such as ``98 of 100`` (received of sent)."""

    frame: int
    a_to_z: str
    z_to_a: str


register.filter("outcome", activation_test_sentence)
register.filter("failure_sentence", failure_sentence)


@register.filter
def round_trip(test: ActivationTest) -> str:
    """Return a sentence with the round-trip time of small packets between the routers; "" if not measured."""
    if test.round_trip_us is None:
        return ""
    times = {name: decimal_text(test.round_trip_us[name] / 1000, 2) for name in ("min", "avg", "max")}
    return _("Round trip between the routers {avg} ms ({min} to {max}).").format(**times)


@register.filter
def interruption(test: ActivationTest) -> str:
    """Return a sentence with the time of the interruption. Return "" if the line was not interrupted, or if
    the interruption has not ended.
    """
    if test.interruption is None:
        return ""
    return _("It interrupted the line for at most {s} s, which counts as maintenance.").format(
        s=decimal_text(test.interruption.total_seconds(), 1)
    )


@register.filter
def sizes(test: ActivationTest) -> list[SizeRow]:
    """Return a row for each tested frame size, smallest first."""
    ways = {way: _by_size(test.directions.get(way, ())) for way in ("a_to_z", "z_to_a")}
    tried = sorted({size for counts in ways.values() for size in counts})
    return [SizeRow(size, *(counts.get(size, "–") for counts in ways.values())) for size in tried]


def _by_size(counts: Iterable[dict[str, Any]]) -> dict[int, str]:
    return {
        count["frame"]: _("{received} of {sent}").format(**count)
        + (f" ({_('in pieces')})" if count["fragmented"] else "")
        for count in counts
    }
