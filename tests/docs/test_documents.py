"""Links lead somewhere, what is named is there, and every setting is in the guide with its default."""

import re
from pathlib import Path

import pytest

from devstack.folders import ROOT
from tests.guides import text_of

DOCUMENTS = sorted(
    document
    for folder in (ROOT / "docs", ROOT / "deploy", ROOT / "agent", ROOT)
    for document in (folder.glob("*.md") if folder == ROOT else folder.rglob("*.md"))
)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
SETTINGS = (ROOT / "portal" / "settings.py").read_text()
GUIDE = text_of("operate", "integrate", "reference")


def anchors(document: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document: Path) -> None:
    broken = []
    for target in LINK.findall(document.read_text()):
        if target.startswith(("https://", "http://", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        file = (document.parent / path).resolve() if path else document
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


def test_every_document_can_be_found_from_the_entry() -> None:
    entry = (ROOT / "docs" / "README.md").read_text()
    listed = {(ROOT / "docs" / target).resolve() for target in LINK.findall(entry)}
    assert [
        str(path)
        for path in (ROOT / "docs").rglob("*.md")
        if path.name != "README.md" and path.parent.name not in ("adr", "measurements") and path not in listed
    ] == []
    index = (ROOT / "docs" / "adr" / "README.md").read_text()
    assert [
        path.name for path in (ROOT / "docs" / "adr").glob("0*.md") if f"({path.name})" not in index
    ] == []


def settings() -> dict[str, str | None]:
    """Names of the variables that are read, and the default where it is a literal."""
    found: dict[str, str | None] = {}
    for name, rest in re.findall(r'env\.\w+\(\s*"(\w+)"(.*)', SETTINGS):
        default = re.search(r"default=(\d[\d._]*)", rest)
        found[name] = default[1].replace("_", "") if default else found.get(name)
    return found


@pytest.mark.parametrize("name", sorted(settings()))
def test_every_setting_is_in_the_operators_guide_with_its_default(name: str) -> None:
    row = re.search(rf"^\|[^|]*`{name}`[^|]*\|([^|]+)\|", GUIDE, re.MULTILINE)
    assert row, f"the settings of docs/ lack {name}"
    default = settings()[name]
    if default is not None:
        assert re.search(rf"(?<![\d.]){re.escape(default)}(?![\d.])", row[1]), f"its default is {default}"


def test_every_setting_of_the_guide_is_read() -> None:
    (table,) = re.findall(r"^## Settings$(.*?)^## ", GUIDE, re.MULTILINE | re.DOTALL)
    named = re.findall(r"^\| `([A-Z_]+)`", table, re.MULTILINE)
    assert sorted(set(named) - settings().keys()) == []


def test_every_test_that_the_threat_model_names_is_there() -> None:
    named = re.findall(r"`([\w/.-]+\.(?:py|go))`", (ROOT / "docs/operate/threat-model.md").read_text())
    assert len(named) > 25
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_management_command_of_the_guides_is_there() -> None:
    text = text_of(".")
    for command in set(re.findall(r"manage\.py (\w+)", text)):
        found = list(ROOT.glob(f"*/management/commands/{command}.py")) + list(
            ROOT.glob(f"portal/*/management/commands/{command}.py")
        )
        assert found, command


def test_every_metric_of_the_documents_is_one_of_ours() -> None:
    sources = "\n".join(
        path.read_text()
        for folder in ("portal/metrics", "agent/internal/metrics")
        for pattern in ("*.py", "*.go")
        for path in (ROOT / folder).rglob(pattern)
    )
    text = text_of("operate", "routers")
    for name in set(re.findall(r"`longline_([a-z_]+)`", text)):
        stem = name.removesuffix("_total")
        known = f"longline_{stem}" in sources or f'"{name}"' in sources
        # Those of each router, and build's, are put together.
        known = known or f'"{stem.removeprefix("router_")}"' in sources or name == "build_info"
        assert known, name


@pytest.mark.parametrize(
    "document",
    [
        "CONTRIBUTING.md",
        "docs/develop/architecture.md",
        "docs/reference/glossary.md",
        "docs/reference/mtu.md",
    ],
)
def test_every_file_that_helps_somebody_find_their_way_is_there(document: str) -> None:
    named = re.findall(
        r"`([\w./-]+\.(?:py|go|csv|md|toml|yaml)|(?:portal|agent|tests|docs)/[\w/]+)`",
        (ROOT / document).read_text(),
    )
    assert len(named) > 5
    names = {
        path.name
        for folder in ("portal", "provisioning", "agent", "tests")
        for path in (ROOT / folder).rglob("*.*")
    }
    missing = [name for name in named if not (ROOT / name).exists() and name not in names]
    assert missing == []
