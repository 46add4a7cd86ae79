"""Private network namespaces, veth pairs, and programs that run in such namespaces.

Everything that a program creates in its namespace ends with the namespace, even after a crash.
Names contain the pid of the process that made them, to identify leftovers.
"""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_FOLDER = Path("/run/netns")
_NAME = re.compile(r"ll(\d+)-.+")
_CLONE_NEWNET = 0x40000000


def why_unusable() -> str | None:
    """Return the reason why namespaces cannot be created, or None if they can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "the ip command is missing (apt-get install iproute2)"
    probe = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True, check=False)
    return f"the kernel refuses network namespaces: {probe.stderr.strip()}" if probe.returncode else None


@contextmanager
def namespace(label: str) -> Iterator[str]:
    """Create a namespace and yield its name. Its loopback is up. IPv6 is off, so that the kernel sends
    nothing itself.

    At the end, the namespace is deleted together with the interfaces in it.
    """
    name = f"ll{os.getpid()}-{label}"
    _ip(f"netns add {name}")
    try:
        _ip(f"-n {name} link set lo up")
        inside(name, _ipv6_off)
        yield name
    finally:
        _ip(f"netns delete {name}")


@contextmanager
def namespaces(labels: Iterable[str]) -> Iterator[dict[str, str]]:
    """Create a namespace for each label. Yield the names of the namespaces, keyed by label."""
    with ExitStack() as made:
        yield {label: made.enter_context(namespace(label)) for label in labels}


def veth(a: tuple[str, str], z: tuple[str, str], *, mtu: int) -> None:
    """Connect `a` and `z`, both (namespace, interface), by a veth pair. Wait for both carriers.

    `mtu` is in bytes (L3).
    """
    (a_namespace, a_name), (z_namespace, z_name) = a, z
    _ip(
        f"link add {a_name} mtu {mtu} netns {a_namespace}"
        f" type veth peer {z_name} mtu {mtu} netns {z_namespace}"
    )
    for where, name in (a, z):
        _ip(f"-n {where} link set {name} up")
    for where, name in (a, z):
        _wait_until_it_carries(where, name)


def bridge(namespace: str, name: str, ports: Iterable[str]) -> None:
    """Create a switch that connects these interfaces. The switch forwards immediately and sends no frames of
    its own (no STP).
    """
    _ip(f"-n {namespace} link add name {name} type bridge mcast_snooping 0")
    for port in ports:
        _ip(f"-n {namespace} link set {port} master {name}")
    _ip(f"-n {namespace} link set {name} up")


def join_bridge(namespace: str, name: str, port: str) -> None:
    """Add a port to an existing switch."""
    _ip(f"-n {namespace} link set {port} master {name}")


def add_address(namespace: str, interface: str, address: str) -> None:
    """Add `address` to the interface. The address includes the prefix length, for example 10.0.0.1/24."""
    _ip(f"-n {namespace} address add {address} dev {interface}")


def set_mtu(namespace: str, interface: str, mtu: int) -> None:
    """Set the MTU in bytes (L3).

    A switch silently drops packets that are larger than the MTU of the outgoing port.
    """
    _ip(f"-n {namespace} link set {interface} mtu {mtu}")


def _wait_until_it_carries(namespace: str, interface: str) -> None:
    """Wait until the kernel considers the interface up (RFC 2863).

    The side that is set up first has no carrier until the other side is up. Until the kernel has noticed the
    carrier, the interface accepts frames and silently drops them.
    """
    for _ in range(500):
        if " state UP " in _ip(f"-n {namespace} -oneline link show {interface}"):
            return
        time.sleep(0.01)
    raise TimeoutError(f"{interface} in {namespace} has had no carrier for 5 s")


def remove_leftovers() -> None:
    """Delete the namespaces of processes that died without a cleanup."""
    if not _FOLDER.is_dir():
        return
    for entry in _FOLDER.iterdir():
        found = _NAME.fullmatch(entry.name)
        if found and not Path("/proc", found[1]).exists():
            _ip(f"netns delete {entry.name}")


def inside(name: str, do: Callable[[], T]) -> T:
    """Call `do` in the namespace and return its result. A socket that `do` opens belongs to the namespace.

    setns(2) moves only the calling thread. A separate thread therefore enters the namespace and then ends.
    """
    result: list[T] = []
    problem: list[BaseException] = []

    def enter() -> None:
        try:
            with (_FOLDER / name).open() as handle:
                libc = ctypes.CDLL(None, use_errno=True)
                if libc.setns(handle.fileno(), _CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), f"setns into {name}")
            result.append(do())
        except BaseException as raised:
            problem.append(raised)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    if problem:
        raise problem[0]
    return result[0]


def _ipv6_off() -> None:
    # /proc/sys/net shows the namespace of the thread that opens the file.
    for scope in ("all", "default"):
        path = Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6")
        if path.exists():
            path.write_text("1")


def _ip(arguments: str) -> str:
    return subprocess.run(["ip", *arguments.split()], check=True, capture_output=True, text=True).stdout


_INSIDE = "LONGLINE_IN_OWN_NAMESPACES"
# The folders with the names of `ip netns` and with VPP's segments. The names contain process ids, which begin
# at 1 in each new namespace.
_OWN_FOLDERS = ("/run/netns", "/dev/shm")  # noqa: S108


def enter(module: str, arguments: Sequence[str], *kinds: str) -> None:
    """Continue the program in new namespaces for processes, mounts and ``kinds`` (such as ``net``).

    Needs root. When the first process in the namespaces ends, the kernel kills all other processes there,
    even frozen ones. SIGTERM ends the program with a cleanup. A program that is started inside the
    namespaces stays in them, even if it calls this function.
    """
    if os.environ.get(_INSIDE) is None:
        unshare = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
        inside = [*unshare, *(f"--{kind}" for kind in kinds), sys.executable, "-m", module, *arguments]
        os.execvpe(inside[0], inside, os.environ | {_INSIDE: "1"})  # noqa: S606
    if os.getpid() == 1:
        _take_in_orphans()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for folder in _OWN_FOLDERS:
        Path(folder).mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True)


def _take_in_orphans() -> None:
    """Fork, and return in the child. The parent waits for all orphaned processes, which would otherwise
    remain as zombies.

    For example, if a PostgreSQL was killed together with its Patroni, a new Patroni would mistake the zombie
    for a running server.
    """
    program = os.fork()
    if program == 0:
        return
    signal.signal(signal.SIGTERM, lambda *_: os.kill(program, signal.SIGTERM))
    # On Ctrl-C, the terminal sends SIGINT to the child too.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        ended, status = os.wait()
        if ended == program:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)
