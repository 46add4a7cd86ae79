"""Keys, commands, packages and VPP messages of the agent that the documents name exist in its code."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from devstack.folders import ROOT
from tests.docs.test_documents import DOCUMENTS

AGENT = ROOT / "agent"
INTERNAL = AGENT / "internal"
CODE = "\n".join(
    path.read_text()
    for folder in ("internal", "cmd")
    for path in sorted((AGENT / folder).rglob("*.go"))
    if not path.name.endswith("_test.go")
)
# Decisions and measurements describe earlier states of the code, so they are left out.
CURRENT = [path for path in DOCUMENTS if path.parent.name not in ("adr", "measurements")]
# VPP has these messages, and a page says that the agent never sends them.
NEVER_SENT = {"hw_interface_set_mtu"}
# Names that look like keys: one of vppcfg's file, two events, and a value of the Helm chart.
OTHER_NAMES = {"state", "vpp.connected", "vpp.lost", "metrics.processes"}

VPP_MESSAGE = re.compile(
    r"`((?:sw_interface|hw_interface|bfd_udp|classify|policer|bridge_domain|vxlan_(?:tunnel_|add)"
    r"|geneve_(?:tunnel_|add)|gre_tunnel_|lcp_itf|feature_is|sw_bond|sw_member|ip_(?:route|address|unnumbered)"
    r"|l2_xconnect|pg_(?:create|delete)|cli_inband|control_ping|sockclnt|create_subif|delete_subif)\w*)`"
)


def configuration_keys() -> dict[str, tuple[str, set[str]]]:
    """Return the default and the allowed values of each key of the agent's configuration, empty if none."""
    source = (INTERNAL / "config" / "config.go").read_text()
    found = {}
    for entry in re.findall(r'\{path: "(.*?)\)\},\n', source, re.DOTALL):
        default = re.search(r'standard: "([^"]*)"', entry)
        values = re.search(r"isOneOf\(([^)]*)", entry)
        allowed = set(re.findall(r'"(\w+)"', values[1])) if values else set()
        found[entry.partition('"')[0]] = (default[1] if default else "", allowed)
    return found


KEYS = configuration_keys()


def flattened(tree: dict[str, object], prefix: str = "") -> Iterator[str]:
    """Yield the dotted path of each key of nested sections."""
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from flattened(value, f"{prefix}{name}.")
        else:
            yield prefix + name


def key_is_wrong(document: Path, name: str, value: str) -> bool:
    """Return whether a document names a key, or a value of it, that the agent does not accept."""
    section, dot, rest = name.partition(".")
    in_section = bool(dot) and any(key.startswith(f"{section}.") for key in KEYS)
    is_file = rest in ("md", "py", "go", "svg", "csv")
    of_agent = document.parent.name in ("agent", "routers")
    if name in KEYS:
        allowed = KEYS[name][1]
        return bool(value and allowed and value not in allowed)
    return name not in OTHER_NAMES and ((in_section and not is_file) or (bool(value) and of_agent))


@pytest.mark.parametrize("document", CURRENT, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_configuration_key_in_a_document_exists(document: Path) -> None:
    text = document.read_text()
    named = re.findall(r"`([a-z_]+(?:\.[a-z_]+)?)(?:: ([a-z]+))?`", text)
    assert [pair for pair in named if key_is_wrong(document, *pair)] == []
    for listing in re.findall(r"^```yaml\n(router: .*?)^```$", text, re.MULTILINE | re.DOTALL):
        assert set(flattened(yaml.safe_load(listing))) - KEYS.keys() == set()


@pytest.mark.parametrize("name", sorted(KEYS))
def test_every_configuration_key_is_documented_with_its_default(name: str) -> None:
    text = (ROOT / "docs" / "routers" / "configure-agent.md").read_text()
    row = re.search(rf"^\| `{re.escape(name)}` \|(.+)\|$", text, re.MULTILINE)
    assert row, "docs/routers/configure-agent.md has no row for it"
    default, allowed = KEYS[name]
    assert default in row[1]
    assert {value for value in allowed if f"`{value}`" not in row[1]} == set()


def test_every_message_of_vpp_in_the_documents_is_used_by_the_agent() -> None:
    # govpp writes sw_interface_dump as SwInterfaceDump, and bfd_udp_add as BfdUDPAdd.
    used = {name.lower() for name in re.findall(r"\b[a-z]\w*\.([A-Z]\w+)", CODE)}
    named = {(path.name, message) for path in CURRENT for message in VPP_MESSAGE.findall(path.read_text())}
    assert len(named) > 30
    assert [
        (document, message)
        for document, message in sorted(named)
        if message.replace("_", "") not in used and f'"{message}"' not in CODE and message not in NEVER_SENT
    ] == []


def test_every_package_in_the_documents_exists() -> None:
    packages = {path.name for path in INTERNAL.iterdir()}
    named = set()
    for document in CURRENT:
        text = document.read_text()
        named |= set(re.findall(r"`agent/internal/(\w+)", text))
        for table in re.findall(r"^\| package \|.*\n((?:\|.*\n)+)", text, re.MULTILINE):
            if "`vppsim`" in table:
                first_cells = "".join(re.findall(r"^\|[^|]+\|", table, re.MULTILINE))
                named |= set(re.findall(r"`(\w+)`", first_cells))
    assert len(named) > 15
    assert named - packages == set()


def test_every_file_of_the_agent_in_the_documents_exists() -> None:
    named = {
        (path.name, name)
        for path in CURRENT
        for name in re.findall(r"`(agent/[\w/.-]+\.(?:go|md))`", path.read_text())
    }
    assert len(named) > 10
    assert [(document, name) for document, name in sorted(named) if not (ROOT / name).exists()] == []


def test_the_agents_readme_has_every_package() -> None:
    readme = (AGENT / "README.md").read_text()
    assert [path.name for path in sorted(INTERNAL.iterdir()) if f"`{path.name}`" not in readme] == []


def test_every_name_that_the_documents_take_from_a_package_is_declared_there() -> None:
    packages = {path.name: path for path in INTERNAL.iterdir()}
    for document in CURRENT:
        for package, name in re.findall(r"`([a-z]+)\.([A-Z]\w+)`", document.read_text()):
            if package in packages:
                source = "".join(path.read_text() for path in packages[package].glob("*.go"))
                declared = re.search(rf"^(?:func|type|var|const) {name}\b", source, re.MULTILINE)
                assert declared, f"{document.name}: {package}.{name}"


def test_every_command_of_the_agent_in_the_documents_exists() -> None:
    known = set(re.findall(r"^  longline-agent (\w+)", CODE, re.MULTILINE))
    command = re.compile(r"(?:^|`|-u longline |-- )longline-agent ([a-z]+)", re.MULTILINE)
    named = {(path.name, name) for path in CURRENT for name in command.findall(path.read_text())}
    assert len(named) > 10
    assert [(document, name) for document, name in sorted(named) if name not in known] == []
