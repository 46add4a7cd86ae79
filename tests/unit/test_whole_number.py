"""Whole numbers from outside, and regular expressions that judge texts from outside."""

import ast
import re
from pathlib import Path

import pytest

from portal.core.whole_number import whole_number
from portal.web.row_id import row_id

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("7", 7),
        ("0007", 7),
        ("4094", 4094),
        ("4095", None),
        ("", None),
        ("-1", None),
        ("+1", None),
        ("1_0", None),
        ("1.0", None),
        ("7\n", None),
        ("²", None),
        ("٣", None),
        ("0" * 5000, 0),
        ("0" * 5000 + "7", 7),
        ("9" * 5000, None),
    ],
)
def test_a_whole_number_is_ascii_digits_of_any_length_up_to_the_largest_value(
    text: str, number: int | None
) -> None:
    assert whole_number(text, most=4094) == number


def test_an_id_of_5000_digits_is_no_id_and_raises_nothing() -> None:
    assert row_id("9" * 5000) is None
    assert row_id("0" * 4999 + "7") == 7


def patterns(source: Path) -> list[tuple[int, str]]:
    """The texts of a module that end like a regular expression, with their lines."""
    return [
        (node.lineno, node.value)
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.match(r"\^?\(?\[|\^", node.value)
        and re.search(r"[^\\]\$\)?\Z", node.value)
    ]


def test_no_regular_expression_of_ours_accepts_a_line_end_after_its_last_character() -> None:
    """Python's ``$`` matches before a final line end too: ``\\Z`` or ``fullmatch`` do not.

    The OpenAPI document and PostgreSQL have dialects of their own, in which ``$`` is the end.
    """
    found = {
        f"{source.relative_to(ROOT)}:{line}"
        for folder in ("portal", "provisioning")
        for source in (ROOT / folder).rglob("*.py")
        if "migrations" not in source.parts and "openapi" not in source.parts
        for line, pattern in patterns(source)
        if pattern not in OTHER_DIALECTS
    }
    assert not found


# Of the document (JSON Schema), of a constraint (PostgreSQL), and of text that only the portal wrote.
OTHER_DIALECTS = {
    "^[0-9]{4}-[0-9]{2}$",
    r"^[a-z0-9-]{1,63}$",
    r"^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.\d+)?\+00:00$",
}
