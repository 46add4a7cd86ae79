"""Whole numbers in external input, and regular expressions that check external texts."""

import ast
import re
from pathlib import Path

import pytest
from msgspec import Struct

from portal.core.quantities import row_id, whole_number
from portal.core.strict_json import Invalid, Malformed, Natural53, Natural63, reader
from portal.imports.cells import whole
from portal.imports.errors import CellNotANumber

ROOT = Path(__file__).parents[3]


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


def test_an_id_of_5000_digits_is_not_found_without_an_error() -> None:
    assert row_id("9" * 5000) is None
    assert row_id("0" * 4999 + "7") == 7


@pytest.mark.parametrize("cell", ["9" * 5000, "²", "-1", "1e3"])
def test_a_cell_without_a_whole_number_is_refused_with_its_column(cell: str) -> None:
    with pytest.raises(CellNotANumber) as refused:
        whole(cell, "cir_bps")
    assert refused.value.field == "cir_bps"


class Report(Struct):
    """A report with whole numbers, as in agents' reports."""

    generation: Natural63
    bytes: Natural53


@pytest.mark.parametrize("number", ["9" * 5000, "9" * 4000, "-" + "9" * 5000, "1e400", "0" * 5000])
def test_an_agents_report_with_a_huge_number_is_refused_and_raises_nothing_else(number: str) -> None:
    for document in (b'{"generation": %s, "bytes": 1}', b'{"generation": 1, "bytes": %s}'):
        with pytest.raises((Invalid, Malformed)):
            reader(Report)(document % number.encode())


def test_every_whole_number_in_a_document_from_outside_has_bounds() -> None:
    """Without bounds a number of thousands of digits would reach the database, which refuses it."""
    found = {
        f"{source.relative_to(ROOT)}:{node.lineno}"
        for folder in ("portal", "provisioning")
        for source in (ROOT / folder).rglob("*.py")
        for kind in ast.walk(ast.parse(source.read_text()))
        if isinstance(kind, ast.ClassDef) and any("Struct" in ast.unparse(base) for base in kind.bases)
        for node in kind.body
        if isinstance(node, ast.AnnAssign)
        and re.search(r"\bint\b", ast.unparse(node.annotation))
        and "Meta" not in ast.unparse(node.annotation)
    }
    assert not found


def patterns(source: Path) -> list[tuple[int, str]]:
    """Return the texts of a module that end like a regular expression, with their lines."""
    return [
        (node.lineno, node.value)
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.match(r"\^?\(?\[|\^", node.value)
        and re.search(r"[^\\]\$\)?\Z", node.value)
    ]


def test_no_regular_expression_accepts_a_final_line_end() -> None:
    r"""Python's ``$`` also matches before a final line end; ``\Z`` or ``fullmatch`` do not.

    The OpenAPI document and PostgreSQL have their own dialects, in which ``$`` is the end.
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


# Patterns of the document (JSON Schema), of a constraint (PostgreSQL), and of texts of the portal itself.
OTHER_DIALECTS = {
    "^[0-9]{4}-[0-9]{2}$",
    r"^[a-z0-9-]{1,63}$",
    r"^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.\d+)?\+00:00$",
}
