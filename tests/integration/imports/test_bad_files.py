"""The portal refuses an unreadable file completely and checks a readable file row by row."""

import pytest

from portal.accounts.models import Customer, User
from portal.core.errors import DomainError
from portal.core.plain_text import csv_lines
from portal.imports.models import Import, ImportRow
from portal.imports.tables import MAX_ROWS, error_rows
from portal.uploads.csv_reader import MAX_BYTES
from tests.integration.imports.files import checked, counts, imported, refusals, sentences, staged

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("content", "code", "facts"),
    [
        ("name\nZürich\n".encode("latin-1"), "table-not-text", {"line": 2}),
        (b"name\nZ\0rich\n", "table-not-text", {"line": 2}),
        (b"PK\x03\x04\x14\x00\x06\x00\x08\x00\x00\x00!\x00\xde", "table-not-text", {"line": 1}),
        (b"", "table-empty", {}),
        (b"latitude,longitude\n1,2\n", "table-column-missing", {"column": "name"}),
        (b"name,height\nA,1\n", "table-column-unknown", {"column": "height"}),
        (b"name,Name\nA,B\n", "table-column-twice", {"column": "name"}),
        (b"name\n", "table-empty", {}),
        (b"name\n# A\n", "table-empty", {}),
        (b'name\nA\n"B\nC\n', "table-quotes", {"line": 3}),
        (b"name\n" + b"A\n" * (MAX_ROWS + 1), "table-too-long", {"max_rows": MAX_ROWS}),
        (b"name\n" + b"A" * MAX_BYTES, "table-too-large", {"max_bytes": MAX_BYTES}),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_unreadable_file_leaves_nothing(
    nora: User, content: bytes, code: str, facts: dict[str, object]
) -> None:
    with pytest.raises(DomainError) as refused:
        staged(nora, "sites", content)
    assert refused.value.code == code
    assert facts.items() <= refused.value.facts.items()
    assert refused.value.sentence
    assert not Import.objects.exists()
    assert not ImportRow.objects.exists()


@pytest.mark.parametrize(
    "content",
    [
        "name,latitude,longitude\nZürich,47.3769,-8.5417\n".encode(),
        "\ufeffname,latitude,longitude\r\nZürich,47.3769,-8.5417\r\n".encode(),
        "name;latitude;longitude\nZürich;47,3769;-8,5417\n".encode(),
        "name\tlatitude\tlongitude\nZürich\t47.3769\t-8.5417\n".encode("utf-16"),
        'NAME, Latitude ,longitude\n"Zürich","47.3769","-8.5417"\n\n,,\n'.encode(),
        "name;latitude;longitude\rZürich;47,3769;-8,5417\r# Bern, Thun, Biel, Olten, Zug, Genf;;\r".encode(),
    ],
    ids=["plain", "with a mark", "of Excel in German", "of Excel as Unicode", "with quotes", "of an old Mac"],
)
def test_tables_are_read_as_spreadsheets_write_them(nora: User, content: bytes) -> None:
    this = checked(nora, "sites", content)
    assert counts(this) == {"new": 1}
    assert this.rows.get().cells["name"] == "Zürich"


@pytest.mark.parametrize(
    "content",
    [
        "name;latitude;longitude;;;\r\nZürich;47,3769;-8,5417;;;\r\n;;;;;\r\n",
        "name,latitude,longitude\r\nZürich,47.3769,-8.5417,,,\r\n",
        "name,,latitude,longitude\r\nZürich,,47.3769,-8.5417\r\n",
        "sep=;\r\nname;latitude;longitude\r\nZürich;47,3769;-8,5417\r\n",
        "\ufeffSEP=;\r\n\r\nname;latitude;longitude\r\nZürich;47,3769;-8,5417\r\n",
        '"sep=\t"\nname\tlatitude\tlongitude\nZürich\t47,3769\t-8,5417\n',
        "sep=,,,\nname,latitude,longitude\nZürich,47.3769,-8.5417\n",
        "\r\n;;;\r\n \r\nname;latitude;longitude\r\nZürich;47,3769;-8,5417\r\n",
        "\n\n\u200bname,\ufefflati\u00adtude,\u00a0longi\u200btude\u2060\nZürich,47.3769,-8.5417\n",
        '"\ufeffname",latitude,longitude\n\u200bZürich\ufeff,\u00a047.3769,-8.5417\u200b\n\u200b,\ufeff,\n',
    ],
    ids=[
        *("trailing columns", "longer rows", "an empty column", "sep", "sep after a mark", "sep for tabs"),
        *("sep with trailing columns", "blank lines", "invisible in the header", "invisible around cells"),
    ],
)
def test_additions_of_excel_are_ignored(nora: User, content: str) -> None:
    this = checked(nora, "sites", content)
    assert (counts(this), refusals(this)) == ({"new": 1}, [])
    row = this.rows.get()
    assert row.cells["name"] == "Zürich"
    assert row.cells["longitude"].replace(",", ".") == "-8.5417"
    # The line number in the file, which users look for.
    lines = content.replace("\r\n", "\n").split("\n")
    assert "Zürich" in lines[row.line - 1]


def test_cell_without_a_column_name_is_refused(nora: User) -> None:
    this = checked(nora, "sites", "name,,latitude,longitude,\nA,x,1,2,\nB,,1,2,y\nC,,1,2,\n")
    assert counts(this) == {"new": 1, "refused": 2}
    assert refusals(this) == [(2, "", "table-row-too-long"), (3, "", "table-row-too-long")]


def test_all_errors_of_all_rows_are_reported(nora: User) -> None:
    table = (
        'name,latitude,longitude\n=cmd|"/c calc"!A1,,\n'.replace('"', "")
        + "'=1+1,,\n"
        + "A,1,2,3\n"
        + "B\u202e,,\n"
        + f"{'C' * 101},,\n"
        + f"{'D' * 501},,\n"
        + "E,north,1e400\n"
        + ",1,2\n"
        + "F,91,0\n"
        + "G,1,\n"
        + '"two\nlines",,\n'
        + "H,,\n"
        + "H,,\n"
        + "# an example,,\n"
    )
    this = checked(nora, "sites", table)
    assert refusals(this) == [
        (2, "name", "table-formula"),
        (4, "", "table-row-too-long"),
        (5, "name", "cell-not-plain"),
        (6, "name", "cell-text-too-long"),
        (7, "name", "table-cell-too-long"),
        (8, "latitude", "cell-not-degrees"),
        (8, "longitude", "cell-not-degrees"),
        (9, "name", "cell-missing"),
        (10, "latitude", "out-of-range"),
        (11, "longitude", "coordinate-missing"),
        (12, "name", "cell-not-plain"),
        (15, "name", "row-twice"),
    ]
    # "=1+1" as the portal's exports escape it, and H once.
    assert (this.total, this.remarks, counts(this)) == (13, 1, {"new": 2, "refused": 11})
    assert "Line 14 of the file also has “H”" in sentences(this)[-1]
    assert all(each.endswith((".", "”.", '.".')) for each in sentences(this))


def test_refused_rows_sent_again_unchanged_are_refused_again(nora: User) -> None:
    """The error file keeps every cell of a row, in any form that a spreadsheet gave it."""
    this = checked(nora, "customers", "name\nMüller, Meier AG\n=cmd\n\t=cmd\n")
    why = [code for _line, _column, code in refusals(this)]
    assert why == ["table-row-too-long", "table-formula", "table-formula"]
    for _ in range(2):
        table = "".join(csv_lines(error_rows(this)))
        assert "Meier AG" in table
        this = imported(nora, "customers", table)
        assert [code for _line, _column, code in refusals(this)] == why
    assert not Customer.objects.exists()
