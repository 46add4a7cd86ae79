"""A pseudo-language that marks every translated text, so that text without marks was never translated."""

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from gettext import NullTranslations
from unittest import mock

from django.utils.translation import trans_real

BEGIN, END = "\N{MATHEMATICAL LEFT WHITE SQUARE BRACKET}", "\N{MATHEMATICAL RIGHT WHITE SQUARE BRACKET}"
_MARKED = re.compile(f"{BEGIN}[^{BEGIN}{END}]*{END}")
# Elements without words for readers, and texts that a page declares the same in every language.
_UNREAD = re.compile(
    r"<(script|style|code|pre|textarea|template)\b.*?</\1>|<!--.*?-->|<(\w+)[^>]*\btranslate=\"no\".*?</\2>",
    re.DOTALL,
)
# Machine-readable names (order.accepted), addresses of pages and of routers.
_CODES = re.compile(r"https?://\S+|\b[a-z_]+(?:\.[a-z_]+)+\b|\b[0-9a-f]*:[0-9a-f:]+")
_SPOKEN = re.compile(r"\b(?:aria-label|title|placeholder|alt|label|data-[a-z-]+-text)=\"([^\"]*)\"")
_WORD = re.compile(r"[^\W\d_][^\W\d_\u2019'-]*[^\W\d_]")


class _Marked(NullTranslations):
    """Translations that return every text unchanged between marks."""

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
    """Replace English by the marked language for the block, also for Django's own texts."""
    with mock.patch.object(trans_real, "translation", return_value=_Marked()):
        yield


def unmarked_words(page: str) -> list[str]:
    """Return the texts of a page that a reader sees or a screen reader speaks, and that have no marks."""
    page = _UNREAD.sub(" ", page)
    shown = [*_SPOKEN.findall(page), *re.split(r"<[^>]*>", _without_marked(page))]
    bare = (_CODES.sub(" ", _without_marked(html.unescape(text))) for text in shown)
    return [" ".join(text.split()) for text in bare if _WORD.search(text)]


def words(text: str) -> set[str]:
    return set(_WORD.findall(text))


def _without_marked(text: str) -> str:
    """Remove marked texts. Marks are nested where one text is inserted into another."""
    while (bare := _MARKED.sub(" ", text)) != text:
        text = bare
    return text
