"""The documents agree with the code: links, files, commands, settings, metrics, layers and versions."""

import re
import subprocess
import tomllib
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
GUIDE = text_of("get-started", "operate", "integrate", "reference")


def anchors(document: Path) -> set[str]:
    """Return the anchors that GitHub makes of the headings of a document."""
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
    """Return each environment variable that is read, with its default where that is a literal number."""
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


def test_every_test_that_the_threat_model_names_exists() -> None:
    named = re.findall(r"`([\w/.-]+\.(?:py|go))`", (ROOT / "docs/operate/threat-model.md").read_text())
    assert len(named) > 25
    assert [name for name in named if not (ROOT / name).exists()] == []


MANAGEMENT_COMMANDS = {
    path.stem
    for folder in ("portal", "provisioning")
    for path in (ROOT / folder).rglob("management/commands/[a-z]*.py")
}


def test_every_management_command_of_the_guides_exists() -> None:
    assert set(re.findall(r"manage\.py (\w+)", text_of("."))) - MANAGEMENT_COMMANDS == set()


def test_every_metric_in_the_documents_exists() -> None:
    sources = "\n".join(
        path.read_text()
        for folder in ("portal/metrics", "agent/internal/metrics")
        for pattern in ("*.py", "*.go")
        for path in (ROOT / folder).rglob(pattern)
    )
    text = text_of("get-started", "operate", "routers")
    for name in set(re.findall(r"`longline_([a-z_]+)`", text)):
        stem = name.removesuffix("_total")
        known = f"longline_{stem}" in sources or f'"{name}"' in sources
        # The names of each router's metrics, and of the build's, are composed at run time.
        known = known or f'"{stem.removeprefix("router_")}"' in sources or name == "build_info"
        assert known, name


# Documents for developers. Commands and paths that they name are checked against the code.
FOR_DEVELOPERS = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "develop").glob("*.md")),
]
AGENT = ROOT / "agent" / "internal"
AGENT_PACKAGES = {path.name for path in AGENT.iterdir() if path.is_dir()}
MAKE_TARGETS = {
    target
    for rule in re.findall(r"^([a-z][a-z -]*):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for target in rule.split()
}
AGENT_COMMANDS = set(
    re.findall(
        r"^  longline-agent ([a-z]+)",
        (ROOT / "agent/cmd/longline-agent/help_text.go").read_text(),
        re.MULTILINE,
    )
)


def code_of(text: str) -> list[str]:
    """Return the code spans and the lines of code blocks of a Markdown text."""
    blocks = re.findall(r"^ *```\w*\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^ *```\w*\n.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    return [*re.findall(r"`([^`\n]+)`", prose), *(line for block in blocks for line in block.splitlines())]


def section(document: str, heading: str) -> str:
    """Return the text below a heading of the second level."""
    (text,) = re.findall(
        rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL
    )
    return str(text)


def first_cells(table: str) -> list[list[str]]:
    """Return the code spans in the first cell of each row of a table."""
    return [re.findall(r"`([^`]+)`", cell) for cell in re.findall(r"^\| (`[^|]+)\|", table, re.MULTILINE)]


@pytest.mark.parametrize("document", [*FOR_DEVELOPERS, "docs/reference/glossary.md", "docs/reference/mtu.md"])
def test_every_file_that_a_document_for_developers_names_exists(document: str) -> None:
    code = code_of((ROOT / document).read_text())
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    files = set(tracked.splitlines())
    folders = {str(parent) for file in files for parent in Path(file).parents}
    names = {Path(file).name for file in files}
    tops = {Path(file).parts[0] for file in files if "/" in file}
    missing = [
        word
        for span in code
        for word in re.findall(r"(?<![\w./<-])[\w.-]+/[\w./-]*\w/?(?![\w<*/-])", span)
        if word.split("/")[0] in tops and word.rstrip("/") not in files | folders
    ]
    missing += [
        span for span in code if re.fullmatch(r"\w+\.(?:py|go|csv|md|toml|yaml)", span) and span not in names
    ]
    assert missing == []


@pytest.mark.parametrize("document", FOR_DEVELOPERS)
def test_every_command_that_a_document_for_developers_names_exists(document: str) -> None:
    code = code_of((ROOT / document).read_text())
    targets = {name for span in code for name in re.findall(r"(?:^|\s)make ([a-z][a-z-]*)", span)}
    commands = {name for span in code for name in re.findall(r"longline-agent ([a-z]+)", span)}
    managed = {name for span in code for name in re.findall(r"manage\.py (\w+)", span)}
    assert targets - MAKE_TARGETS == set()
    assert commands - AGENT_COMMANDS == set()
    assert managed - MANAGEMENT_COMMANDS == set()


def test_the_tour_changes_lines_that_exist() -> None:
    text = (ROOT / "docs/develop/tour.md").read_text()
    files = {name for name in re.findall(r"`([\w/.-]+\.\w+)`", text) if (ROOT / name).is_file()}
    lines = {line.strip() for name in files for line in (ROOT / name).read_text().splitlines()}
    diffs = "".join(re.findall(r"^```diff\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    existing = [line[1:].strip() for line in diffs.splitlines() if not line.startswith("+")]
    assert len(existing) > 5
    assert [line for line in existing if line not in lines] == []


def test_the_tests_of_the_agent_that_the_tour_runs_exist() -> None:
    text = (ROOT / "docs/develop/tour.md").read_text()
    runs = re.findall(r"go test \./internal/(\w+)/ [^`]*?-run '?(\w+)", text)
    assert len(runs) > 2
    for package, name in runs:
        # One of them is a test that the reader writes.
        sources = [text, *(path.read_text() for path in (AGENT / package).glob("*_test.go"))]
        assert any(re.search(rf"^func \w*{name}", source, re.MULTILINE) for source in sources), name


def test_the_architecture_lists_every_package_of_the_agent_once() -> None:
    table = section("docs/develop/architecture.md", "Packages of the agent")
    listed = [name for cell in first_cells(table) for name in cell]
    assert sorted(listed) == sorted(AGENT_PACKAGES)


def test_the_architecture_lists_the_layers_in_the_order_that_imports_obey() -> None:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = [
        contract["layers"] for contract in configuration["contracts"] if contract["type"] == "layers"
    ]
    listed = first_cells(section("docs/develop/architecture.md", "Layers of the portal"))
    assert [{name.replace("/", ".") for name in row} for row in listed] == [
        {name.strip(" ()") for name in layer.split("|")} for layer in layers
    ]


def test_the_documents_name_the_version_of_this_release() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    number = project["version"]
    (released,) = re.findall(
        rf"^## {re.escape(number)} - (\d{{4}}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert f"Version {number} ({released})" in (ROOT / "README.md").read_text()
    assert f"## {number}\n" in (ROOT / "docs/operate/upgrade-notes.md").read_text()


def test_the_readme_names_the_supported_releases_of_vpp_and_python() -> None:
    releases = (ROOT / "agent/cmd/longline-agent/vpp_releases_test.go").read_text()
    (supported,) = re.findall(r"^var supported = \[\]string\{(.*)\}", releases, re.MULTILINE)
    first, *_, last = re.findall(r'"([\d.]+)"', supported)
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    readme = (ROOT / "README.md").read_text()
    assert f"| VPP | {first} to {last} |" in readme
    assert f"| Python | {required.removeprefix('>=')} or newer |" in readme


@pytest.mark.parametrize("document", ["README.md", "CHANGELOG.md", "docs/operate/upgrade-notes.md"])
def test_every_setting_that_a_front_page_names_is_read(document: str) -> None:
    named = set(re.findall(r"\bLONGLINE_[A-Z_]+\b", (ROOT / document).read_text()))
    compose = set(re.findall(r"\bLONGLINE_[A-Z_]+\b", (ROOT / "docker-compose.yml").read_text()))
    assert named - settings().keys() - compose == set()


@pytest.mark.parametrize("document", ["README.md", "CHANGELOG.md"])
def test_a_front_page_has_at_most_150_lines(document: str) -> None:
    text = (ROOT / document).read_text()
    # Of the changelog, each release.
    parts = re.split(r"^## ", text, flags=re.MULTILINE) if document == "CHANGELOG.md" else [text]
    assert max(len(part.splitlines()) for part in parts) <= 150
