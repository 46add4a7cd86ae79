"""Text that reads as it is written: nothing in it speaks to a terminal or turns the direction of writing.

A name with U+202E in it turns round the words that stand beside it on a page, and so says what nobody wrote.
"""

import unicodedata

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

# Unicode's explicit directional formatting characters (UAX 9).
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# Controls, halves of surrogate pairs, and Unicode's own ends of lines and paragraphs.
_CONTROLS = ("Cc", "Cs", "Zl", "Zp")
_OF_LINES = "\t\n\r"
# Whoever reads texts refuses them already, in words of their own.
_REFUSED_ELSEWHERE = "\0"
NAMED = 5


def is_plain(text: str) -> bool:
    """Whether every character shows, or at least only parts words."""
    return not _hidden(text)


def made_plain(text: str) -> str:
    """With a space for each character that is not plain."""
    hidden = _hidden(text)
    return "".join(" " if each in hidden else each for each in text) if hidden else text


def plain_line(text: str) -> None:
    """A form's or a serializer's validator: one line of plain text. Raises ValidationError."""
    _refuse(_hidden(text.replace(_REFUSED_ELSEWHERE, "")))


def plain_lines(text: str) -> None:
    """The same for several lines, with tabs."""
    _refuse(_hidden("".join(each for each in text if each not in _REFUSED_ELSEWHERE + _OF_LINES)))


def _hidden(text: str) -> set[str]:
    if text.isprintable():
        # Among these is none of them, and nearly every text is so.
        return set()
    return {each for each in text if unicodedata.category(each) in _CONTROLS or each in _TURNING}


def _refuse(hidden: set[str]) -> None:
    if hidden:
        named = ", ".join(f"U+{ord(each):04X}" for each in sorted(hidden)[:NAMED])
        message = _(
            "It contains invisible characters (%(named)s) that change how the text around them is "
            "shown. Remove them, or type the text again."
        )
        raise ValidationError(message, code="not_plain_text", params={"named": named})
