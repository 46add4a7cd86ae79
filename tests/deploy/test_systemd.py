"""systemd accepts the units in deploy/, and rates them as well sandboxed."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from devstack.folders import ROOT
from tests.guides import text_of

FOLDER = ROOT / "deploy" / "systemd"
UNITS = sorted(path.name for path in FOLDER.iterdir())
SERVICES = [name for name in UNITS if name.endswith(".service")]
# systemd's exposure level in tenths, from 0 (no access) to 100 (all rights of root); 92 without sandbox.
MOST_EXPOSED = 30


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """Return copies of the units that start /bin/true, because systemd requires that the programs exist."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is missing: no unit was checked (Debian: apt-get install systemd)")
    for name in UNITS:
        text, programs = re.subn(
            r"^(Exec\w+)=/\S+", r"\1=/bin/true", (FOLDER / name).read_text(), flags=re.MULTILINE
        )
        assert programs or name not in SERVICES, name
        (tmp_path / name).write_text(text)
    return tmp_path


def complaints(unit: Path) -> str:
    """Return systemd's complaints about this unit, "" if there are none."""
    done = subprocess.run(
        ["systemd-analyze", "verify", "--recursive-errors=no", "--man=no", unit],
        capture_output=True,
        text=True,
        check=False,
    )
    return (done.stdout + done.stderr).strip() or (
        f"exit status {done.returncode}" if done.returncode else ""
    )


@pytest.mark.parametrize("name", UNITS)
def test_systemd_accepts_each_unit(units: Path, name: str) -> None:
    assert complaints(units / name) == ""


def test_a_misspelt_setting_is_found(units: Path) -> None:
    unit = units / "longline-web.service"
    unit.write_text(unit.read_text().replace("NoNewPrivileges=", "NoNewPriviledges="))
    assert "NoNewPriviledges" in complaints(unit)


def test_restarting_the_target_restarts_its_workers_and_starts_new_ones() -> None:
    target = (FOLDER / "longline-workers.target").read_text()
    assert "longline-worker@batch.service" in re.findall(r"longline-worker@\w+\.service", target)
    assert "PartOf=longline-workers.target" in (FOLDER / "longline-worker@.service").read_text()


@pytest.mark.parametrize("name", SERVICES)
def test_a_unit_has_a_small_exposure_level(units: Path, name: str) -> None:
    done = subprocess.run(
        [
            "systemd-analyze",
            "security",
            "--no-pager",
            "--offline=true",
            f"--threshold={MOST_EXPOSED}",
            units / name,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-400:] + done.stderr


def test_every_unit_is_installed_by_a_guide() -> None:
    guides = text_of("get-started", "operate", "routers")
    # Guides also write longline-{web,beat}.service.
    named = {
        f"longline-{part}"
        for found in re.findall(r"longline-\{([\w,-]+)\}", guides)
        for part in found.split(",")
    }
    for name in UNITS:
        assert name in guides or name.removesuffix(".service") in named, name
