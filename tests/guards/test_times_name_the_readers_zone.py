"""Every time on a page is in the reader's zone and names it, through one function and one field (ADR 70)."""

import re

from devstack.folders import ROOT

# A month is always a month in UTC; "c" and "U" are for scripts.
_OTHER_DATES = re.compile(r"""\|(?:date|time):["'](?!c["']|U["']|Y-m["']|F Y["'])[^"']*["']""")
_OTHER_TEXTS = re.compile(r"%H:%M[^\"'\n]*\"?[^\n]{0,12}UTC|\} UTC\b|%\(\w+\)s UTC\b")
_OTHER_INPUTS = re.compile(
    r"""\bforms\.(?:DateTimeField|TimeField|SplitDateTimeField)\(|["']datetime-local["']"""
)


def test_templates_show_times_through_one_filter() -> None:
    templates = sorted((ROOT / "templates").rglob("*"))
    wrong = [
        (path.name, found)
        for path in templates
        if path.suffix in {".html", ".txt"}
        for found in [*_OTHER_DATES.findall(path.read_text()), *re.findall(r"\}\} UTC", path.read_text())]
    ]
    assert len(templates) > 100
    assert wrong == []


def test_sentences_write_times_through_one_function() -> None:
    sources = [path for path in sorted((ROOT / "portal").rglob("*.py")) if "migrations" not in path.parts]
    wrong = [
        (path.name, found)
        for path in sources
        if path.name != "reader_texts.py"
        for found in _OTHER_TEXTS.findall(path.read_text())
    ]
    assert len(sources) > 300
    assert wrong == []


def test_times_are_read_through_one_field() -> None:
    forms = [path for path in sorted((ROOT / "portal/web").rglob("*.py")) if path.name != "moments.py"]
    assert len(forms) > 60
    assert [(path.name, found) for path in forms for found in _OTHER_INPUTS.findall(path.read_text())] == []
    inputs = {
        path.name for path in (ROOT / "templates").rglob("*.html") if "datetime-local" in path.read_text()
    }
    # The browser reads the graph's window and names its zone.
    assert inputs == {"_throughput.html"}
    assert (ROOT / "templates/ui/_throughput.html").read_text().count("data-zone-name") == 2
