"""Install the packages that a bare Debian 12 lacks: `python -m devstack.packages demo|test|drills|ha`.

This module runs on the system's Python, before the virtual environment exists. It therefore only uses the
standard library. It also finds promtool, Prometheus's check of metrics, rules and configurations.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from devstack.folders import BUILD, ROOT


@dataclass(frozen=True)
class Package:
    """A Debian package.

    `service`: a service that Debian starts when it installs the package. This module stops the service,
    because the demo and the tests run private servers. `tool`: if set, the package is not installed; only
    this program is unpacked into build/tools.
    """

    name: str
    present: Callable[[], bool]
    service: str | None = None
    tool: str | None = None


TOOLS = BUILD / "tools"


def _command(name: str) -> Callable[[], bool]:
    places = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:{TOOLS}"
    return lambda: shutil.which(name, path=places) is not None


DEMO = (
    Package("postgresql", lambda: any(Path("/usr/lib/postgresql").glob("*/bin/initdb")), "postgresql"),
    Package("redis-server", _command("redis-server"), "redis-server"),
    Package("iproute2", _command("ip")),
    Package("gettext", _command("msgfmt")),
    Package("python3-venv", lambda: importlib.util.find_spec("ensurepip") is not None),
    Package("ca-certificates", lambda: Path("/etc/ssl/certs/ca-certificates.crt").exists()),
)
TEST = (
    *DEMO,
    Package("chromium-headless-shell", _command("chromium-headless-shell")),
    # Only these programs are unpacked: the complete packages would start a Prometheus and a web server.
    Package("prometheus", _command("promtool"), tool="usr/bin/promtool"),
    Package("nginx", _command("nginx"), tool="usr/sbin/nginx"),
    Package("pgbouncer", _command("pgbouncer"), "pgbouncer"),
    Package("snmpd", _command("snmpd"), "snmpd"),
    Package("snmp", _command("snmpbulkwalk")),
    # The build of the prose linter needs a C compiler and the C library.
    Package("gcc", _command("gcc")),
    Package("libc6-dev", lambda: Path("/usr/include/stdio.h").exists()),
)
DRILLS = (*DEMO, Package("haproxy", _command("haproxy"), "haproxy"))
# The programs of deploy/ha/. redis-sentinel is the same program as redis-server.
HA = (
    *DEMO,
    Package("patroni", _command("patroni"), "patroni"),
    # The etcd client library for Patroni.
    Package("python3-etcd", lambda: Path("/usr/lib/python3/dist-packages/etcd").exists()),
    Package("etcd-server", _command("etcd"), "etcd"),
    Package("haproxy", _command("haproxy"), "haproxy"),
    Package("keepalived", _command("keepalived"), "keepalived"),
    Package("libfaketime", lambda: any(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))),
)
SETS = {"demo": DEMO, "test": TEST, "drills": DRILLS, "ha": HA}


class CannotInstall(Exception):
    """A program is missing and this module cannot install it. The text says what the user must do."""


def install_missing(packages: tuple[Package, ...]) -> list[str]:
    """Install the packages that are missing, and return their names. If none is missing, do nothing."""
    missing = [package for package in packages if not package.present()]
    names = [package.name for package in missing]
    if not missing:
        return []
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise CannotInstall(f"missing packages: as root on Debian, apt-get install {' '.join(names)}")
    print(f"installing {' '.join(names)}", flush=True)
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-qq"], env=environment, check=True)
    names = [package.name for package in missing if package.tool is None]
    if names:
        subprocess.run(
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *names],
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )
    for package in missing:
        if package.service is not None:
            _stop_system_service(package.service)
        if package.tool is not None:
            _unpack(package.name, package.tool)
    return names


def _unpack(package: str, tool: str) -> None:
    """Unpack one file of a package. `tool` is the path of the file without a leading slash."""
    TOOLS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        # If root runs apt, it downloads with a separate account. That account cannot write to this folder.
        subprocess.run(
            ["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", package], cwd=folder, check=True
        )
        (archive,) = Path(folder).glob("*.deb")
        subprocess.run(["dpkg-deb", "--extract", str(archive), folder], check=True)
        shutil.copy(Path(folder) / tool, TOOLS)


def _stop_system_service(name: str) -> None:
    """Stop and disable a service that this installation has just started. Never call it for others."""
    if Path("/run/systemd/system").exists():
        subprocess.run(["systemctl", "disable", "--quiet", "--now", name], check=False)
    else:
        subprocess.run(["service", name, "stop"], check=False, stdout=subprocess.DEVNULL)


def require_python() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036 - the text is for the older ones
        raise CannotInstall(f"Python 3.11 or newer is needed; {sys.executable} is {sys.version.split()[0]}")


def require_go(go: str) -> None:
    """Raise CannotInstall unless a sufficiently new Go exists. The Go in Debian 12 is too old."""
    needed = re.search(r"^go (\d+)\.(\d+)", (ROOT / "agent" / "go.mod").read_text(), re.MULTILINE)
    if needed is None:
        raise CannotInstall("agent/go.mod names no Go version")
    requirement = f"Go {needed[1]}.{needed[2]} or newer is needed to build the agent (https://go.dev/dl/)"
    try:
        # In the folder of the Go module, Go itself downloads the required toolchain if downloads are allowed.
        printed = subprocess.run(
            [go, "env", "GOVERSION"], cwd=ROOT / "agent", capture_output=True, text=True, check=False
        )
    except OSError:
        raise CannotInstall(f"{requirement}; '{go}' was not found in PATH or /usr/local/go/bin") from None
    found = re.match(r"go(\d+)\.(\d+)", printed.stdout)
    if found is None or (int(found[1]), int(found[2])) < (int(needed[1]), int(needed[2])):
        raise CannotInstall(f"{requirement}; '{go}' is {printed.stdout.strip() or printed.stderr.strip()}")


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0] not in SETS:
        print(f"usage: python -m devstack.packages {'|'.join(SETS)}", file=sys.stderr)
        return 2
    try:
        require_python()
        require_go(os.environ.get("GO", "go"))
        install_missing(SETS[arguments[0]])
    except (CannotInstall, subprocess.CalledProcessError) as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


class PromtoolMissing(Exception):
    """No promtool was found.

    `python3 -m devstack.packages test` unpacks it from Debian's package into build/tools.
    """


class Complaint(Exception):
    """promtool has found an error. The text is promtool's output."""


def promtool() -> str:
    """Return the path of promtool. Raises PromtoolMissing."""
    found = shutil.which("promtool", path=f"{TOOLS}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        raise PromtoolMissing("promtool is not installed: python3 -m devstack.packages test")
    return found


def run_promtool(*arguments: str, stdin: str = "") -> None:
    """Run a check, such as ``check config FILE``, or unit tests of rules (``test rules FILE``).

    Raises Complaint and PromtoolMissing.
    """
    done = subprocess.run([promtool(), *arguments], input=stdin, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Complaint(f"promtool {' '.join(arguments)}:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
