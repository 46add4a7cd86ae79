"""Files, units, containers and menus that the pages for operators name exist, and pages have one shape."""

import re
from pathlib import Path

import pytest
import yaml

from devstack.folders import ROOT
from portal.alarms.kinds import Kind
from portal.web.page.navigation import OF_THE_NOC
from tests.docs.test_documents import DOCUMENTS

PAGES = [
    *(
        page
        for folder in ("get-started", "operate")
        for page in sorted((ROOT / "docs" / folder).glob("*.md"))
    ),
    *sorted((ROOT / "deploy").rglob("*.md")),
]
COMPOSE = (ROOT / "docker-compose.yml").read_text()
SERVICES = set(yaml.safe_load(COMPOSE)["services"])
UNITS = {path.name for path in (ROOT / "deploy" / "systemd").iterdir()}
# Words in which unit names begin, and that are none: programs, containers, folders and images.
OTHER_NAMES = {"longline-agent", "longline-portal", "longline-pki"}
# The upgrade notes name the units that an operator removes.
UNITS_OF_0_1_0 = {"longline-relay", "longline-relay.service"}
LONGEST_PAGE, LONGEST_WITHOUT_CONTENTS = 400, 150


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize(
    "page", [page for page in DOCUMENTS if page.is_relative_to(ROOT / "docs")], ids=name_of
)
def test_a_page_is_short_or_has_contents_at_its_top(page: Path) -> None:
    text = page.read_text()
    lines = text.count("\n")
    if page.name == "errors.md":
        pytest.skip("generated, and looked up by code")
    assert lines <= LONGEST_PAGE
    if lines > LONGEST_WITHOUT_CONTENTS:
        before_the_first_section = text.partition("\n## ")[0]
        assert before_the_first_section.count("](#") >= 3, "the page has no contents"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_file_of_deploy_that_a_page_names_exists(page: Path) -> None:
    folders = "|".join(path.name for path in (ROOT / "deploy").iterdir() if path.is_dir())
    # Names in braces are several, which the test of units finds.
    named = re.findall(rf"(?<![\w/.])(deploy/(?:{folders})/[\w./@-]*\w)(?![\w./@-]*{{)", page.read_text())
    assert sorted({name for name in named if not (ROOT / name).exists()}) == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_unit_that_a_page_names_exists(page: Path) -> None:
    named = set(re.findall(r"(?<![\w/.-])(longline-[a-z][\w-]*(?:@|\.service|\.target)?)", page.read_text()))
    # longline-web is the unit longline-web.service, longline-worker@provisioning one of longline-worker@.
    known = UNITS | {unit.partition(".")[0] for unit in UNITS} | OTHER_NAMES | UNITS_OF_0_1_0
    assert sorted(named - known - {"longline-worker"}) == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_container_that_a_page_names_exists(page: Path) -> None:
    named = set()
    command = r"docker-compose (?:exec|run|restart|logs|up)(?: --?[\w-]+)*((?: [a-z][a-z-]*)+)"
    for names in re.findall(command, page.read_text()):
        first, *others = names.split()
        # What follows `exec SERVICE` and `run SERVICE` is the command in the container.
        named |= {first} | {other for other in others if other in SERVICES}
    assert sorted(named - SERVICES) == []


def test_the_containers_variables_have_the_defaults_of_the_compose_file() -> None:
    page = (ROOT / "docs" / "get-started" / "install-containers.md").read_text()
    rows = re.findall(r"^\| `(LONGLINE_\w+)` \| (\S+) \|", page, re.MULTILINE)
    assert len(rows) >= 10
    defaults = dict(re.findall(r"\$\{(LONGLINE_\w+):-([^}]*)\}", COMPOSE))
    assert dict(rows) == defaults


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_page_of_a_menu_exists(page: Path) -> None:
    menus = {str(group.title): {str(each.title) for each in group.pages} for group in OF_THE_NOC}
    text = " ".join(page.read_text().split())
    named = re.findall(rf"\*({'|'.join(menus)})\*, \*([^*]+)\*", text)
    assert [(menu, title) for menu, title in named if title not in menus[menu] | menus.keys()] == []


@pytest.mark.parametrize("kind", Kind)
def test_every_alarm_is_in_the_table_of_troubleshooting(kind: Kind) -> None:
    page = (ROOT / "docs" / "operate" / "troubleshooting.md").read_text()
    table = page.partition("## All alarms\n")[2].partition("\n## ")[0]
    assert str(kind.label) in table
