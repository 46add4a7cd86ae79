"""The contents of the agent's Debian package, built reproducibly. scripts/try-agent-package installs it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from devstack.folders import ROOT

VERSION = "1.2.3"
GO = os.environ.get("GO") or shutil.which("go") or "/usr/local/go/bin/go"
# Tests download nothing.
OFFLINE = os.environ | {"GO": GO, "VERSION": VERSION, "GOPROXY": "off"}


def build(folder: Path) -> Path:
    subprocess.run([ROOT / "scripts" / "agent-packages", folder, "amd64"], env=OFFLINE, check=True)
    return folder / f"longline-agent_{VERSION}_amd64.deb"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("dpkg-deb"):
        pytest.skip("dpkg-deb is missing: no Debian package was checked")
    # `go mod download` would also download modules for other systems and for nfpm's tests.
    listed = [GO, "-C", ROOT / "tools", "list", "-deps", "github.com/goreleaser/nfpm/v2/cmd/nfpm"]
    if subprocess.run(listed, env=OFFLINE, capture_output=True, check=False).returncode:
        pytest.skip("nfpm was not fetched: no Debian package was built (`make agent-packages` fetches it)")
    return build(tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def unpacked(package: Path) -> Path:
    """Return the package's files, with the files that dpkg runs and reads in DEBIAN/."""
    folder = package.parent / "unpacked"
    subprocess.run(["dpkg-deb", "--raw-extract", package, folder], check=True)
    return folder


def test_every_file_has_its_place_and_mode(package: Path) -> None:
    listed = subprocess.run(
        ["dpkg-deb", "--contents", package], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    entries = {line.split()[5]: " ".join(line.split()[:2]) for line in listed}
    assert {path: mode for path, mode in entries.items() if not path.endswith("/")} == {
        "./etc/longline/agent.yaml": "-rw-r----- root/root",
        "./usr/bin/longline-agent": "-rwxr-xr-x root/root",
        "./usr/lib/systemd/system/longline-agent.service": "-rw-r--r-- root/root",
        "./usr/share/doc/longline-agent/copyright": "-rw-r--r-- root/root",
        "./usr/share/doc/longline-agent/third-party": "-rw-r--r-- root/root",
    }
    assert entries["./etc/longline/"] == "drwxr-x--- root/root"


def test_the_unit_starts_the_program_and_the_program_prints_its_version(
    package: Path, unpacked: Path
) -> None:
    unit = (unpacked / "usr/lib/systemd/system/longline-agent.service").read_text()
    assert "\nExecStart=/usr/bin/longline-agent -config /etc/longline/agent.yaml\n" in unit
    output = subprocess.run(
        [unpacked / "usr/bin/longline-agent", "-version"], check=True, capture_output=True, text=True
    ).stdout
    assert output.startswith(f"longline-agent {VERSION}\n")
    field = subprocess.run(
        ["dpkg-deb", "--field", package, "Version"], check=True, capture_output=True, text=True
    ).stdout
    assert field.strip() == VERSION


def test_dpkg_keeps_the_operators_configuration(unpacked: Path) -> None:
    assert (unpacked / "DEBIAN/conffiles").read_text() == "/etc/longline/agent.yaml\n"


@pytest.mark.parametrize("name", ["postinst", "prerm", "postrm"])
def test_each_script_of_the_package_is_valid_shell(unpacked: Path, name: str) -> None:
    script = unpacked / "DEBIAN" / name
    assert os.access(script, os.X_OK)
    subprocess.run(["sh", "-n", script], check=True)


def test_the_same_commit_gives_the_same_package(package: Path, tmp_path: Path) -> None:
    os.utime(ROOT / "deploy" / "agent.yaml")
    assert build(tmp_path).read_bytes() == package.read_bytes()
