"""Child processes and free TCP ports on loopback.

Each child is started in a new session, watched, and stopped with its descendants by its pid.
"""

import errno
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Self

LOOPBACK = "127.0.0.1"

# Ports below this range are not used: browsers refuse some of them, and well-known services use some.
_PORTS = range(20_000, 65_536)
# The range of ports that Linux gives to outgoing connections: its first and last port (ip-sysctl).
_OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")
_ENOUGH = 1000
# These sockets are never closed, so that reservations last until the process ends.
_RESERVATIONS = ExitStack()


def free_ports(count: int) -> list[int]:
    """Return `count` different ports on which no process listens. Raises OSError.

    The caller may bind the ports later. Until the caller's process ends, this function returns the ports to
    no other process. Outgoing connections do not get these ports either, unless this machine reserves nearly
    all ports for outgoing connections.
    """
    candidates = _candidates()
    random.shuffle(candidates)
    drawn = list(islice(filter(_reserve, candidates), count))
    if len(drawn) < count:
        raise OSError(errno.EADDRINUSE, f"only {len(drawn)} of {count} ports are free on {LOOPBACK}")
    return drawn


def accepts(port: int, address: str = LOOPBACK) -> bool:
    """Return whether a process on this machine accepts a connection to `port`."""
    try:
        socket.create_connection((address, port), timeout=0.5).close()
    except OSError:
        return False
    return True


def _candidates() -> list[int]:
    first, last = map(int, _OUTGOING.read_text().split())
    others = [port for port in _PORTS if not first <= port <= last]
    return others if len(others) >= _ENOUGH else list(_PORTS)


def _reserve(port: int) -> bool:
    """Reserve a port with an abstract Unix socket. In a network namespace, only one process can have the
    socket's name.
    """
    with ExitStack() as reservation:
        mark = reservation.enter_context(socket.socket(socket.AF_UNIX))
        try:
            mark.bind(f"\0longline-port-{port}")
            with socket.socket() as probe:
                probe.bind((LOOPBACK, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
        _RESERVATIONS.push(reservation.pop_all())
    return True


def descendants(pid: int) -> list[int]:
    """Return the pids of the children of a process, of their children, and so on, at this moment."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found: list[int] = []
    left = [pid]
    while left:
        found += (more := children.get(left.pop(), []))
        left += more
    return found


POLL_S = 0.05
LOG_TAIL_LINES = 15


class ChildFailed(Exception):
    """A child has ended, or has not become ready in time. `log` is its log file."""

    def __init__(self, name: str, what: str, log: Path) -> None:
        lines = log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:] if log.exists() else []
        tail = "".join(f"\n    {line}" for line in lines)
        super().__init__(f"{name} {what}; read {log}{tail}")
        self.name = name
        self.log = log


@dataclass
class Child:
    """A child process. `user` is the account that it runs as (only root can choose one).

    If this process dies without stopping the child, the kernel sends SIGTERM to the child (setpriv
    --pdeathsig). A killed demo therefore leaves no process behind.
    """

    name: str
    argv: Sequence[str]
    log: Path
    env: Mapping[str, str] | None = None
    cwd: Path | None = None
    user: str | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    grace_s: float = 10
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _signalled: bool = field(default=False, repr=False)
    _ready: Callable[[], bool] = field(default=lambda: True, repr=False)

    def start(self) -> Self:
        self._signalled = False
        wrapper = ["setpriv", "--pdeathsig", "TERM"]
        if self.user is not None:
            wrapper += [f"--reuid={self.user}", f"--regid={self.user}", "--init-groups"]
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*wrapper, *self.argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.env,
                cwd=self.cwd,
                start_new_session=True,
            )
        return self

    @property
    def process(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError(f"{self.name} was not started")
        return self._process

    def raise_if_dead(self) -> None:
        code = self.process.poll()
        if code is not None:
            raise ChildFailed(self.name, f"ended with status {code}", self.log)

    def wait_until(self, ready: Callable[[], bool], timeout_s: float = 30) -> Self:
        """Poll `ready` until it returns true. Raises ChildFailed if the child ends or time runs out.

        A later call of `restart` waits for the same condition.
        """
        self._ready = ready
        deadline = time.monotonic() + timeout_s
        while not ready():
            self.raise_if_dead()
            if time.monotonic() > deadline:
                raise ChildFailed(self.name, f"was not ready within {timeout_s:g} s", self.log)
            time.sleep(POLL_S)
        # Check this after `ready`: if the child could not bind its port, another process may have responded.
        self.raise_if_dead()
        return self

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a fatal signal to the whole process group, and wait until the child has ended."""
        os.killpg(self.process.pid, number)
        self.process.wait(self.grace_s)

    def freeze(self) -> None:
        """Freeze the process. Connections to it then hang and are not refused."""
        os.killpg(self.process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.killpg(self.process.pid, signal.SIGCONT)

    def restart(self, timeout_s: float = 30) -> None:
        """Start the child again after it has ended, and wait until it is ready."""
        self.start().wait_until_ready(timeout_s)

    def wait_until_ready(self, timeout_s: float = 30) -> Self:
        """Wait for the condition of the last `wait_until`."""
        return self.wait_until(self._ready, timeout_s)

    def signal_stop(self) -> None:
        """Send `stop_signal`, but only once: after a second signal, Celery would drop its running tasks."""
        if self._process is not None and not self._signalled and self._process.poll() is None:
            self._signalled = True
            self._process.send_signal(self.stop_signal)

    def stop(self) -> None:
        """Send `stop_signal` and wait. Then send SIGKILL to the processes of the group that are left."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self.signal_stop()
            try:
                self._process.wait(self.grace_s)
            except subprocess.TimeoutExpired:
                pass
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        self._process = None


@dataclass(frozen=True, slots=True)
class Server:
    """A running service: its URL and its process."""

    url: str
    child: Child


class Family:
    """Children that are stopped together."""

    def __init__(self) -> None:
        self._children: list[Child] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, child: Child) -> Child:
        self._children.append(child)
        return child.start()

    def __getitem__(self, name: str) -> Child:
        """Return the child with this name. Raises KeyError."""
        for child in self._children:
            if child.name == name:
                return child
        raise KeyError(name)

    def __iter__(self) -> Iterator[Child]:
        return iter(self._children)

    def raise_if_dead(self) -> None:
        for child in self._children:
            child.raise_if_dead()

    def stop(self) -> None:
        """Signal all children first and then wait, so that stopping takes as long as the slowest child."""
        for child in reversed(self._children):
            child.signal_stop()
        while self._children:
            self._children.pop().stop()


def run(
    argv: Sequence[str],
    *,
    log: Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    user: str | None = None,
    script: str = "",
) -> str:
    """Run a program to its end and return its standard output.

    ``user``: the account that it runs as; None means the current account. ``script``: its standard input.
    Raises ChildFailed, with the log, if it fails.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as stderr:
        done = subprocess.run(
            argv,
            input=script,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            check=False,
            cwd=cwd,
            env=env,
            user=user,
            group=user,
            extra_groups=[] if user else None,
        )
        stderr.write(done.stdout.encode() if done.returncode else b"")
    if done.returncode:
        raise ChildFailed(" ".join(argv[:3]), f"ended with status {done.returncode}", log)
    return done.stdout
