"""A real VPP: find the installation, run several VPPs next to each other, and use their command lines."""

import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Self

from devstack.folders import BUILD
from devstack.process import Child, Family
from devstack.routers.agent import Sockets

DEFAULT_PREFIXES = ("/opt/vpp", "/usr")
# A successful command prints nothing or the name of the new interface.
_SUCCESS = re.compile(r"(?:[a-z][\w/.-]*)?")

# Both values are in seconds. VPP omits a 0 before the decimal point.
_CLOCK = re.compile(r"reftime (?P<kernel>[\d.]+) .*?error (?P<error>-?[\d.]+)", re.DOTALL)


class NotInstalled(Exception):
    """VPP is not installed. The text names the folders that were searched."""


class CommandRefused(Exception):
    """VPP has rejected a configuration command. The text is VPP's error message."""


@dataclass(frozen=True, slots=True)
class Installation:
    prefix: Path

    @property
    def vpp(self) -> Path:
        return self.prefix / "bin" / "vpp"

    @property
    def vppctl(self) -> Path:
        return self.prefix / "bin" / "vppctl"

    def environment(self) -> dict[str, str]:
        """Return the environment variables for VPP.

        If VPP is not installed under /usr, they contain the folders of its libraries.
        """
        folders = [str(path.parent) for path in self.prefix.glob("lib/**/libvlib.so*")]
        path = ":".join(dict.fromkeys([*folders, os.environ.get("LD_LIBRARY_PATH", "")])).strip(":")
        return os.environ | ({"LD_LIBRARY_PATH": path} if path else {})


def find() -> Installation:
    """Return the VPP in VPP_PREFIX if that is set, otherwise the first VPP in the usual folders."""
    configured = os.environ.get("VPP_PREFIX")
    prefixes = [configured] if configured else list(DEFAULT_PREFIXES)
    for prefix in prefixes:
        found = Installation(Path(prefix))
        if os.access(found.vpp, os.X_OK) and os.access(found.vppctl, os.X_OK):
            return found
    where = ", ".join(f"{prefix}/bin" for prefix in prefixes)
    raise NotInstalled(
        f"no VPP is installed (looked for vpp and vppctl in {where}; VPP_PREFIX names another)"
    )


def startup_conf(folder: PurePath, *unix: str, heap: str, statistics: str) -> str:
    """Return startup.conf for a VPP without a network card, whose files are in ``folder``.

    ``unix``: further lines of the section unix. ``heap`` and ``statistics``: the sizes of these memories.
    `poll-sleep-usec` is not needed: VPP sleeps because all its interfaces are in interrupt mode.
    """
    lines = "\n  ".join(["nodaemon", f"runtime-dir {folder}", f"cli-listen {folder}/cli.sock", *unix])
    return f"""\
unix {{
  {lines}
}}
socksvr {{ socket-name {folder}/api.sock }}
statseg {{
  socket-name {folder}/stats.sock
  size {statistics}
  update-interval 1
}}
memory {{
  main-heap-size {heap}
  main-heap-page-size 4K
}}
buffers {{
  buffers-per-numa 8192
  page-size 4K
}}
plugins {{
  plugin dpdk_plugin.so {{ disable }}
}}
"""


def is_clock_wrong(shown: str) -> bool:
    """Return whether VPP's time differs from the kernel's by more than a tenth. ``shown``: `show clock
    verbose`.

    Both times count from the start of VPP. Raises CommandRefused if the output has another form.
    """
    found = _CLOCK.search(shown)
    if found is None:
        raise CommandRefused(f"vppctl show clock verbose: {shown}")
    return abs(float(found["error"])) > float(found["kernel"]) / 10


@dataclass
class VppProcess(Child):
    """A VPP process that is started again if VPP misjudges the clock of its processor.

    VPP measures the clock for 1 ms when it starts (``estimate_clock_frequency`` in vppinfra/time.c). The
    result is wrong if another process gets the processor during this time.

    * If VPP's seconds are too short, VPP repeatedly logs that its clock is wrong, and hardly ever serves its
      sockets.
    * If VPP's seconds are at least twice as long as real seconds, VPP logs nothing and never corrects its
      clock (``clib_time_verify_frequency``). Its BFD sessions go down and up as long as it runs.
    """

    # Returns the output of `show clock verbose`. It is called when VPP is ready.
    clock: Callable[[], str] = field(kw_only=True)
    starts: int = 3
    _log_begins: int = field(default=0, repr=False)

    def start(self) -> Self:
        self._log_begins = self.log.stat().st_size if self.log.exists() else 0
        return super().start()

    def wait_until(self, ready: Callable[[], bool], timeout_s: float = 30) -> Self:
        for _ in range(self.starts - 1):
            super().wait_until(lambda: ready() or self._logs_wrong_clock(), timeout_s)
            if not (self._logs_wrong_clock() or is_clock_wrong(self.clock())):
                break
            self.end()
            self.start()
        return super().wait_until(ready, timeout_s)

    def _logs_wrong_clock(self) -> bool:
        return b"Rejecting large frequency change" in self.log.read_bytes()[self._log_begins :]


@dataclass(frozen=True)
class Vpp:
    """One of several VPPs on this machine. All its files are in `folder`."""

    installation: Installation
    label: str
    folder: Path
    logs: Path
    namespace: str
    # The VPP runs on the usable CPU with this index, modulo the number of usable CPUs.
    turn: int = 0

    @property
    def sockets(self) -> Sockets:
        return Sockets(self.folder / "api.sock", self.folder / "stats.sock", self.folder / "cli.sock")

    def start(self, family: Family) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        config = self.folder / "startup.conf"
        config.write_text(self.startup_conf())
        child = VppProcess(
            name=f"vpp-{self.label}",
            argv=["ip", "netns", "exec", self.namespace, str(self.installation.vpp), "-c", str(config)],
            log=self.logs / f"vpp-{self.label}.log",
            env=self.installation.environment(),
            clock=lambda: self.show("show clock verbose"),
        )
        family.start(child).wait_until(self._responds)

    def startup_conf(self) -> str:
        """Return startup.conf, in which each VPP of this machine has its own API segment and CPU."""
        cpus = sorted(os.sched_getaffinity(0))
        own = f"""\
api-segment {{ prefix ll{os.getpid()}-{self.label} }}
cpu {{ main-core {cpus[self.turn % len(cpus)]} }}
"""
        log = f"log {self.logs / f'vpp-{self.label}-cli.log'}"
        return own + startup_conf(self.folder, log, heap="512M", statistics="32M")

    def show(self, command: str) -> str:
        """Run a command and return its output. Raises CommandRefused if VPP does not respond."""
        done = subprocess.run(
            [str(self.installation.vppctl), "-s", str(self.sockets.cli), *command.split()],
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
            env=self.installation.environment(),
        )
        if done.returncode:
            raise CommandRefused(f"{self.label}: vppctl {command}: {done.stderr.strip()}")
        return done.stdout

    def configure(self, *commands: str) -> None:
        """Run configuration commands. Raises CommandRefused for the first command that VPP rejects."""
        for command in commands:
            output = self.show(command).strip()
            if not _SUCCESS.fullmatch(output):
                raise CommandRefused(f"{self.label}: {command}: {output}")

    def walk_slowly(self) -> None:
        """Check for expired packet fragments only once per second, so that an idle VPP sleeps longer.

        This setting exists only in the API, and neither on the command line nor in startup.conf. Raises
        CalledProcessError.
        """
        subprocess.run([str(BUILD / "vpptestctl"), str(self.sockets.api), "walk-slowly"], check=True)

    def version(self) -> str:
        """Return VPP's version, for example "25.10-release"."""
        output = self.show("show version")
        found = re.match(r"vpp v(\S+)", output)
        return found[1] if found else output.strip()

    def _responds(self) -> bool:
        if not (self.sockets.cli.exists() and self.sockets.api.exists()):
            return False
        try:
            return self.show("show version").startswith("vpp ")
        except (CommandRefused, subprocess.TimeoutExpired):
            return False
