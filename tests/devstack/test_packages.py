"""Only missing packages are installed, and an error names those that cannot be installed."""

from pathlib import Path

import pytest

from devstack import packages
from devstack.packages import CannotInstall, Package

ABSENT_SERVER = Package("some-server", lambda: False, "some-server")
ABSENT_TOOL = Package("some-tool", lambda: False)
PRESENT_SERVER = Package("other-server", lambda: True, "other-server")


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replace apt-get, service and systemctl of Debian by programs that record their arguments."""
    log = tmp_path / "calls"
    log.touch()
    for name in ("apt-get", "service", "systemctl"):
        script = tmp_path / name
        script.write_text(f'#!/bin/sh\necho "{name} $*" >> {log}\n')
        script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(packages.os, "geteuid", lambda: 0)
    return log


def test_a_machine_with_all_packages_is_not_changed(calls: Path) -> None:
    assert packages.install_missing((PRESENT_SERVER,)) == []
    assert calls.read_text() == ""


def test_only_missing_packages_are_installed_and_only_their_services_are_stopped(calls: Path) -> None:
    assert packages.install_missing((PRESENT_SERVER, ABSENT_SERVER, ABSENT_TOOL)) == [
        "some-server",
        "some-tool",
    ]
    lines = calls.read_text().splitlines()
    assert lines[0].startswith("apt-get update")
    assert lines[1].endswith(" some-server some-tool")
    assert len(lines) == 3
    assert "some-server" in lines[2]
    assert "other-server" not in calls.read_text()


def test_without_root_the_error_names_the_packages(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages.os, "geteuid", lambda: 1000)
    with pytest.raises(CannotInstall, match="apt-get install some-tool"):
        packages.install_missing((ABSENT_TOOL,))
    assert calls.read_text() == ""


def test_a_missing_or_old_go_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotInstall, match=r"Go 1\.\d+ or newer is needed .*'/nowhere/go' was not found"):
        packages.require_go("/nowhere/go")
    old = tmp_path / "go"
    old.write_text("#!/bin/sh\necho go1.19.8\n")
    old.chmod(0o755)
    with pytest.raises(CannotInstall, match=r"is go1\.19\.8"):
        packages.require_go(str(old))
