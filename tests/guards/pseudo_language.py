"""A language in which every text of a catalogue is marked: what a page shows without marks was never one."""

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from gettext import NullTranslations
from unittest import mock

from django.utils.translation import trans_real

BEGIN, END = "\N{MATHEMATICAL LEFT WHITE SQUARE BRACKET}", "\N{MATHEMATICAL RIGHT WHITE SQUARE BRACKET}"
_MARKED = re.compile(f"{BEGIN}[^{BEGIN}{END}]*{END}")
# What no reader reads as words, and what the page says is the same in every language.
_UNSEEN = re.compile(
    r"<(script|style|code|pre|textarea|template)\b.*?</\1>|<!--.*?-->|<(\w+)[^>]*\btranslate=\"no\".*?</\2>",
    re.DOTALL,
)
# Names that programs go by (order.accepted), addresses of pages and of routers.
_CODES = re.compile(r"https?://\S+|\b[a-z_]+(?:\.[a-z_]+)+\b|\b[0-9a-f]*:[0-9a-f:]+")
_SPOKEN = re.compile(r"\b(?:aria-label|title|placeholder|alt|label|data-[a-z-]+-text)=\"([^\"]*)\"")
_WORD = re.compile(r"[^\W\d_][^\W\d_\u2019'-]*[^\W\d_]")


class _Marked(NullTranslations):
    """Every text as it is, between marks."""

    def gettext(self, message: str) -> str:
        return f"{BEGIN}{message.rpartition(trans_real.CONTEXT_SEPARATOR)[2]}{END}"

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return self.gettext(msgid1 if n == 1 else msgid2)

    def language(self) -> str:
        return "en"

    def to_language(self) -> str:
        return "en"


@contextmanager
def every_text_marked() -> Iterator[None]:
    """Inside, English is the marked language, for Django's own texts too."""
    with mock.patch.object(trans_real, "translation", return_value=_Marked()):
        yield


def unmarked_words(page: str) -> list[str]:
    """What a reader sees or hears of it outside of marks, a piece of text each."""
    page = _UNSEEN.sub(" ", page)
    shown = [*_SPOKEN.findall(page), *re.split(r"<[^>]*>", _without_marked(page))]
    bare = (_CODES.sub(" ", _without_marked(html.unescape(text))) for text in shown)
    return [" ".join(text.split()) for text in bare if _WORD.search(text)]


def words(text: str) -> set[str]:
    return set(_WORD.findall(text))


def _without_marked(text: str) -> str:
    """Marks may stand within marks, where one text is put into another."""
    while (bare := _MARKED.sub(" ", text)) != text:
        text = bare
    return text
