"""Missing packages are installed, present ones left alone, and what cannot be helped is said."""

from pathlib import Path

import pytest

from devstack import packages
from devstack.packages import CannotInstall, Package

ABSENT_SERVER = Package("some-server", lambda: False, "some-server")
ABSENT_TOOL = Package("some-tool", lambda: False)
PRESENT_SERVER = Package("other-server", lambda: True, "other-server")


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Debian of which apt-get, service and systemctl only write down how they were called."""
    log = tmp_path / "calls"
    log.touch()
    for name in ("apt-get", "service", "systemctl"):
        script = tmp_path / name
        script.write_text(f'#!/bin/sh\necho "{name} $*" >> {log}\n')
        script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(packages.os, "geteuid", lambda: 0)
    return log


def test_a_machine_that_has_everything_is_not_touched(calls: Path) -> None:
    assert packages.install_missing((PRESENT_SERVER,)) == []
    assert calls.read_text() == ""


def test_only_what_is_absent_is_installed_and_only_its_service_is_stopped(calls: Path) -> None:
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


def test_who_is_not_root_is_told_what_to_install(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages.os, "geteuid", lambda: 1000)
    with pytest.raises(CannotInstall, match="apt-get install some-tool"):
        packages.install_missing((ABSENT_TOOL,))
    assert calls.read_text() == ""


def test_a_go_that_is_absent_or_too_old_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotInstall, match=r"Go 1\.\d+ or newer is needed .*'/nowhere/go' was not found"):
        packages.require_go("/nowhere/go")
    old = tmp_path / "go"
    old.write_text("#!/bin/sh\necho go1.19.8\n")
    old.chmod(0o755)
    with pytest.raises(CannotInstall, match=r"is go1\.19\.8"):
        packages.require_go(str(old))
