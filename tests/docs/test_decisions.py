"""Every decision record in docs/adr/ has the same form, and the list in docs/adr/README.md is complete."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from devstack.folders import ROOT

ADR = ROOT / "docs" / "adr"
RECORDS = sorted(ADR.glob("0*.md"))
BY_NUMBER = {int(record.name[:4]): record for record in RECORDS}
HEADINGS = ["Context", "Decision", "Consequences", "Alternatives"]
INDEX = (ADR / "README.md").read_text()

HEAD = re.compile(
    r"# (?P<number>\d+)\. (?P<title>.+)\n\nDate: (?P<date>\d{4}-\d\d-\d\d)\n\nStatus: (?P<status>.+)\n"
)
REFERENCE = re.compile(r"\[(\d+)\]\((0\d{3}-[a-z0-9-]+\.md)\)")
# What a status says of the newer decision, and what the newer decision says of the older one.
RELATIONS = {"amended by": "Amends", "superseded by": "Supersedes"}


def head_of(record: Path) -> re.Match[str]:
    head = HEAD.match(record.read_text())
    assert head, f"{record.name} does not begin with number, title, date and status"
    return head


def references(record: Path, label: str) -> set[int]:
    """Return the numbers after a label such as ``Amends:``, and check that each link leads to its number."""
    line = re.search(rf"^{label}:? ?(.+)$", record.read_text(), re.MULTILINE)
    found = REFERENCE.findall(line[1]) if line else []
    assert [(number, target) for number, target in found if not target.startswith(f"{int(number):04}-")] == []
    return {int(number) for number, _ in found}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name[:4])
def test_record_has_the_common_form(record: Path) -> None:
    head = head_of(record)
    assert int(head["number"]) == int(record.name[:4])
    number = r"\[\d+\]\(0\d{3}-[a-z0-9-]+\.md\)"
    assert re.fullmatch(rf"accepted|(?:amended|superseded) by {number}(?:, {number})*", head["status"])
    text = record.read_text()
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == HEADINGS
    sections = re.split(r"^## .+$", text, flags=re.MULTILINE)[1:]
    assert all(section.strip() for section in sections), "a section is empty"
    assert text.count("\n") <= 80, "a record is one page; move figures to docs/measurements/"


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name[:4])
def test_list_has_the_record_with_its_title_and_status(record: Path) -> None:
    head = head_of(record)
    status = REFERENCE.sub(r"\1", head["status"])
    assert f"| {head['number']} | [{head['title']}]({record.name}) | {status} |\n" in INDEX


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name[:4])
def test_modules_in_the_record_exist(record: Path) -> None:
    named = re.findall(r"`((?:portal|provisioning|devstack|agent)/[\w/.-]+\.\w+)`", record.read_text())
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_list_has_every_record_once_in_order() -> None:
    numbers = [int(number) for number in re.findall(r"^\| (\d+) \| \[", INDEX, re.MULTILINE)]
    assert numbers == sorted(BY_NUMBER)


def test_list_explains_every_unused_number() -> None:
    missing = {number for before, after in pairwise(sorted(BY_NUMBER)) for number in range(before + 1, after)}
    (table,) = re.findall(r"^## Numbers without a page$(.*?)^## ", INDEX, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE)
    assert {int(number) for row in rows for number in row.split(",")} == missing


@pytest.mark.parametrize("relation", RELATIONS)
def test_older_and_newer_record_refer_to_each_other(relation: str) -> None:
    older_first = {
        (number, newer)
        for number, record in BY_NUMBER.items()
        for newer in references(record, f"Status: {relation}")
    }
    newer_first = {
        (older, number)
        for number, record in BY_NUMBER.items()
        for older in references(record, RELATIONS[relation])
    }
    assert older_first == newer_first
    assert all(older < newer for older, newer in older_first)


def test_list_of_measurements_has_every_page_with_its_title() -> None:
    folder = ROOT / "docs" / "measurements"
    listed = re.findall(r"^\| (.+) \| \[(.+)\]\((.+)\) \|$", (folder / "README.md").read_text(), re.MULTILINE)
    pages = sorted(page for page in folder.glob("*.md") if page.name != "README.md")
    assert listed == [
        (page.name[:10], page.read_text().splitlines()[0].removeprefix("# "), page.name) for page in pages
    ]
