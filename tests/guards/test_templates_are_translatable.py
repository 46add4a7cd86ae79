"""Every word in a template is marked for gettext, or is a name that this file lists."""

import re
from pathlib import Path

import pytest

TEMPLATES = Path(__file__).parents[2] / "templates"
# Names of the product, of protocols and of units, and the prefix of API tokens: the same in every language.
NAMES = {"Longline", "NetBox", "VPP", "VNI", "UTC", "EIR", "IPv", "bit/s", "ll"}
_MARKED = re.compile(r"{%\s*blocktranslate\b.*?{%\s*endblocktranslate\s*%}", re.DOTALL)
_COMMENT = re.compile(r"{#.*?#}|{%\s*comment\b.*?{%\s*endcomment\s*%}|<!--.*?-->", re.DOTALL)
_TEMPLATE = re.compile(r"{%.*?%}|{{.*?}}", re.DOTALL)
_SPOKEN = re.compile(r"\b(?:aria-label|title|placeholder|alt|value)=\"([^\"]*)\"")
# Texts for machines: addresses, and a command that is the same in every language.
_UNSPOKEN = re.compile(
    r"<(?:script|style|code)\b[^>]*>.*?</(?:script|style|code)>|<!DOCTYPE[^>]*>", re.DOTALL
)
_INPUT_VALUE = re.compile(r"\bvalue=\"[^\"]*\"")
# Texts that a tag or an included template shows: a label, or a parameter with one of these names.
_LABEL = re.compile(r"{%\s*(?:badge|card|column|figure|fold|pair|post_button)\s+\"([^\"]*)\"")
_PARAMETER = re.compile(
    r"{%(?!\s*livepart\b)[^%]*?\b(?:about|action_label|caption|described|empty|help|label|next_label|subtitle"
    r"|text|title)=\"([^\"]*)\""
)
_WORD = re.compile(r"[A-Za-z][A-Za-z/’'-]*[A-Za-z]")


def unmarked(text: str) -> set[str]:
    """Return the words of a template that a reader sees and that gettext does not translate."""
    text = _COMMENT.sub(" ", text)
    arguments = [*_LABEL.findall(text), *_PARAMETER.findall(text)]
    for noise in (_MARKED, _TEMPLATE, _INPUT_VALUE, _UNSPOKEN):
        text = noise.sub(" ", text)
    shown = " ".join([*arguments, *_SPOKEN.findall(text), re.sub(r"<[^>]*>", " ", text)])
    return set(_WORD.findall(re.sub(r"&\w+;", " ", shown))) - NAMES


def templates() -> list[Path]:
    return sorted(path for path in TEMPLATES.rglob("*") if path.suffix in (".html", ".txt"))


@pytest.mark.parametrize("template", templates(), ids=lambda path: str(path.relative_to(TEMPLATES)))
def test_every_word_is_marked(template: Path) -> None:
    assert unmarked(template.read_text()) == set()


def test_the_check_finds_unmarked_words() -> None:
    assert unmarked('<p>{% translate "Fine" %} <b>Forgotten</b> {{ value }}</p>') == {"Forgotten"}
    assert unmarked('<a aria-label="Close it">{% blocktranslate %}Fine{% endblocktranslate %}</a>') == {
        "Close",
        "it",
    }
    assert unmarked('{% column "Forgotten" number=True %}{{ n }}{% endcolumn %}') == {"Forgotten"}
    assert unmarked('{% include "ui/_empty.html" with title=_("Fine") text="None" %}') == {"None"}
    assert unmarked('{% badge _("Fine") "success" %}{% livepart "map" about="network" %}') == set()
