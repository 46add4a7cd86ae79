"""A real VPP: where it is installed, how one is started beside others, and its command line."""

import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from devstack.dataplane import Sockets
from devstack.folders import BUILD
from devstack.process import Child, Family

DEFAULT_PREFIXES = ("/opt/vpp", "/usr")
# What the command line prints for commands that succeed: nothing, or the new interface's name.
_SUCCESS = re.compile(r"(?:[a-z][\w/.-]*)?")

# Both in seconds; VPP writes no 0 before the point.
_CLOCK = re.compile(r"reftime (?P<kernel>[\d.]+) .*?error (?P<error>-?[\d.]+)", re.DOTALL)


class NotInstalled(Exception):
    """No VPP; the text names where it was looked for."""


class CommandRefused(Exception):
    """VPP's command line answered a configuration command with a complaint."""


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
        """A prefix other than /usr has its libraries beside it."""
        folders = [str(path.parent) for path in self.prefix.glob("lib/**/libvlib.so*")]
        path = ":".join(dict.fromkeys([*folders, os.environ.get("LD_LIBRARY_PATH", "")])).strip(":")
        return os.environ | ({"LD_LIBRARY_PATH": path} if path else {})


def find() -> Installation:
    """The VPP of VPP_PREFIX where that is set, else the first one of the usual places."""
    asked = os.environ.get("VPP_PREFIX")
    prefixes = [asked] if asked else list(DEFAULT_PREFIXES)
    for prefix in prefixes:
        found = Installation(Path(prefix))
        if os.access(found.vpp, os.X_OK) and os.access(found.vppctl, os.X_OK):
            return found
    where = ", ".join(f"{prefix}/bin" for prefix in prefixes)
    raise NotInstalled(
        f"no VPP is installed (looked for vpp and vppctl in {where}; VPP_PREFIX names another)"
    )


def is_clock_wrong(shown: str) -> bool:
    """Whether VPP's time since its start differs by a tenth from the kernel's, by `show clock verbose`.

    Raises CommandRefused where VPP shows something else.
    """
    found = _CLOCK.search(shown)
    if found is None:
        raise CommandRefused(f"vppctl show clock verbose: {shown}")
    return abs(float(found["error"])) > float(found["kernel"]) / 10


@dataclass
class VppProcess(Child):
    """A VPP, started again when it misjudges its processor's clock.

    It measures that for 1 ms at its start (``estimate_clock_frequency`` in vppinfra/time.c), and is wrong
    when it loses the processor in between. One whose seconds are too short says so again and again, and
    hardly ever gets to its sockets. One whose seconds are twice too long or longer says nothing and never
    mends it (``clib_time_verify_frequency``): its BFD sessions go down and up for as long as it lives.
    """

    # The answer to `show clock verbose`, asked for once VPP is ready.
    clock: Callable[[], str] = field(kw_only=True)
    starts: int = 3
    _log_begins: int = field(default=0, repr=False)

    def start(self) -> Self:
        self._log_begins = self.log.stat().st_size if self.log.exists() else 0
        return super().start()

    def wait_until(self, ready: Callable[[], bool], timeout_s: float = 30) -> Self:
        for _ in range(self.starts - 1):
            super().wait_until(lambda: ready() or self._says_that_it_misjudged(), timeout_s)
            if not (self._says_that_it_misjudged() or is_clock_wrong(self.clock())):
                break
            self.end()
            self.start()
        return super().wait_until(ready, timeout_s)

    def _says_that_it_misjudged(self) -> bool:
        return b"Rejecting large frequency change" in self.log.read_bytes()[self._log_begins :]


@dataclass(frozen=True)
class Vpp:
    """One VPP of several on this machine; everything of its own is under `folder`."""

    installation: Installation
    label: str
    folder: Path
    logs: Path
    namespace: str
    # Which of the usable CPUs runs it, counted round.
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
        family.start(child).wait_until(self._answers)

    def startup_conf(self) -> str:
        """No `poll-sleep-usec`: with every interface in interrupt mode an idle VPP sleeps by itself."""
        cpus = sorted(os.sched_getaffinity(0))
        return f"""\
unix {{
  nodaemon
  runtime-dir {self.folder}
  cli-listen {self.sockets.cli}
  log {self.logs / f"vpp-{self.label}-cli.log"}
}}
api-segment {{ prefix ll{os.getpid()}-{self.label} }}
socksvr {{ socket-name {self.sockets.api} }}
statseg {{
  socket-name {self.sockets.stats}
  size 32M
  update-interval 1
}}
memory {{
  main-heap-size 512M
  main-heap-page-size 4K
}}
buffers {{
  buffers-per-numa 8192
  page-size 4K
}}
cpu {{ main-core {cpus[self.turn % len(cpus)]} }}
plugins {{
  plugin dpdk_plugin.so {{ disable }}
}}
"""

    def show(self, command: str) -> str:
        """The answer to any command. Raises CommandRefused when VPP does not answer at all."""
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
        """Run configuration commands; raises CommandRefused at the first one that VPP complains about."""
        for command in commands:
            answer = self.show(command).strip()
            if not _SUCCESS.fullmatch(answer):
                raise CommandRefused(f"{self.label}: {command}: {answer}")

    def walk_slowly(self) -> None:
        """Look for pieces of packets whose rest never came once a second: an idle VPP then sleeps longer.

        By the API, since neither its command line nor startup.conf can. Raises CalledProcessError.
        """
        subprocess.run([str(BUILD / "vpptestctl"), str(self.sockets.api), "walk-slowly"], check=True)

    def version(self) -> str:
        """For example "25.10-release"."""
        answer = self.show("show version")
        found = re.match(r"vpp v(\S+)", answer)
        return found[1] if found else answer.strip()

    def _answers(self) -> bool:
        if not (self.sockets.cli.exists() and self.sockets.api.exists()):
            return False
        try:
            return self.show("show version").startswith("vpp ")
        except (CommandRefused, subprocess.TimeoutExpired):
            return False
