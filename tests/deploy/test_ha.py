"""The files of deploy/ha/ after an operator has filled them in, and the drills' use of them."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from devstack.folders import ROOT
from drills.ha.bring_up import web_certificate
from drills.ha.units import command
from drills.ha.verdict import longest_gap_s

WRITE_CONFIGURATION = ROOT / "deploy" / "ha" / "write-configuration"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filled")
    subprocess.run([str(WRITE_CONFIGURATION), str(folder)], check=True)
    return folder


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_no_placeholder_is_left(filled: Path) -> None:
    left = {str(file): re.findall(r"\$\{[A-Z_0-9]+\}", file.read_text()) for file in files(filled)}
    assert {file: names for file, names in left.items() if names} == {
        str(filled / app / "etc/systemd/system/longline-web.service.d/ha.conf"): ["${WEB_PROCESSES}"]
        for app in ("app1", "app2")
    }, "only what systemd itself fills in"


def test_only_the_owner_reads_files_with_secrets(filled: Path) -> None:
    secrets = re.findall(r"=(\w+)", (filled / "secrets.env").read_text())
    for file in files(filled):
        if any(secret in file.read_text() for secret in secrets):
            assert file.stat().st_mode & 0o077 == 0, file
    assert (filled / "db1/etc/hosts").stat().st_mode & 0o777 == 0o644


def test_secrets_are_generated_once(filled: Path) -> None:
    before = {file: file.read_text() for file in files(filled)}
    subprocess.run([str(WRITE_CONFIGURATION), str(filled)], check=True)
    assert {file: file.read_text() for file in files(filled)} == before


def test_only_the_first_redis_starts_as_primary(filled: Path) -> None:
    replicas = {
        name: "replicaof" in (filled / name / "etc/redis/redis.conf").read_text()
        for name in ("db1", "db2", "db3")
    }
    assert replicas == {"db1": False, "db2": True, "db3": True}


def test_haproxy_accepts_its_file(filled: Path, tmp_path: Path) -> None:
    haproxy = shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin")
    if haproxy is None:
        pytest.skip("haproxy is missing: its file was read by nobody (Debian: apt-get install haproxy)")
    text = (filled / "lb1/etc/haproxy/haproxy.cfg").read_text()
    pem = tmp_path / "portal.pem"
    pem.write_text(web_certificate(tmp_path))
    config = tmp_path / "haproxy.cfg"
    config.write_text(text.replace("/etc/haproxy/portal.pem", str(pem)))
    done = subprocess.run([haproxy, "-c", "-f", str(config)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr


def test_a_drop_in_replaces_the_command_of_a_unit(filled: Path) -> None:
    web = command("longline-web", filled / "app2")
    assert "10.0.0.32:8000" in web.argv
    assert "127.0.0.1:8000" not in web.argv
    assert web.cwd == "/opt/longline"
    assert web.env["LONGLINE_PKI_DIR"] == "/var/lib/longline/pki"


def test_a_workers_name_has_its_queue_and_its_machine(filled: Path) -> None:
    worker = command("longline-worker@provisioning", filled / "app1")
    assert worker.argv[-6:] == ["-n", "provisioning@%h", "-Q", "provisioning", "--concurrency", "2"]


@pytest.mark.parametrize(
    ("times", "gap"), [([], 10.0), ([1.0, 2.0], 8.0), ([3.0, 4.0, 9.5], 5.5), ([-5.0, 5.0, 15.0], 5.0)]
)
def test_the_longest_gap_includes_the_start_and_the_end(times: list[float], gap: float) -> None:
    from drills.ha.customers import Accepted

    assert longest_gap_s([Accepted(at, "", "", "") for at in times], 0.0, 10.0) == gap
