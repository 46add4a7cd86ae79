"""Plain text: invisible characters are refused in forms and replaced in CSV and imports."""

import unicodedata

import pytest
from django.core.exceptions import ValidationError

from portal.core.plain_text import is_plain, made_plain, plain_line, plain_lines

TURNING = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
PLAIN = [
    "",
    "Zürich – Basel, “dock 4” (1 Gbit/s)",
    "קו שכור",
    "خط مستأجر",
    "می\u200cخواهم",
    "\U0001f469\u200d\U0001f52c",
    "1\u00a0000",
]


@pytest.mark.parametrize("text", PLAIN)
def test_ordinary_texts_are_plain(text: str) -> None:
    assert is_plain(text)
    assert made_plain(text) == text
    plain_line(text)
    plain_lines(text)


@pytest.mark.parametrize("sign", [*TURNING, "\x07", "\x1b", "\x7f", "\x9b", "\u2028", "\u2029", "\ud800"])
def test_invisible_characters_are_named(sign: str) -> None:
    text = f"Milk{sign}run"
    assert not is_plain(text)
    assert made_plain(text) == "Milk run"
    for validator in (plain_line, plain_lines):
        with pytest.raises(ValidationError) as refused:
            validator(text)
        assert refused.value.code == "not_plain_text"
        assert f"(U+{ord(sign):04X})" in refused.value.messages[0]


@pytest.mark.parametrize("sign", ["\n", "\r", "\t"])
def test_only_texts_of_several_lines_may_contain_line_ends(sign: str) -> None:
    plain_lines(f"Milk{sign}run")
    with pytest.raises(ValidationError):
        plain_line(f"Milk{sign}run")


def test_a_few_of_many_are_named() -> None:
    with pytest.raises(ValidationError) as refused:
        plain_line(TURNING * 10)
    assert refused.value.messages[0].count("U+") == 5


def test_nul_is_left_to_forms_and_serializers() -> None:
    assert not is_plain("\0")
    plain_line("\0")


def test_no_control_character_passes_for_plain() -> None:
    controls = [chr(n) for n in range(0x110000) if unicodedata.category(chr(n)) in ("Cc", "Cs", "Zl", "Zp")]
    assert not [each for each in controls if is_plain(each)]
