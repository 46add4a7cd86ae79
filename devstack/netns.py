"""Private network namespaces and veth pairs; their names contain our pid, which identifies leftovers."""

import ctypes
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_FOLDER = Path("/run/netns")
_NAME = re.compile(r"ll(\d+)-.+")
_CLONE_NEWNET = 0x40000000


def why_unusable() -> str | None:
    """Return None if namespaces can be created, else the reason."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "the ip command is missing (apt-get install iproute2)"
    probe = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True, check=False)
    return f"the kernel refuses network namespaces: {probe.stderr.strip()}" if probe.returncode else None


@contextmanager
def namespace(label: str) -> Iterator[str]:
    """Create a namespace with loopback up and IPv6 off; its kernel then sends nothing automatically.

    Yields its name. Deleting the namespace deletes the interfaces in it.
    """
    name = f"ll{os.getpid()}-{label}"
    _ip("netns", "add", name)
    try:
        _ip("-n", name, "link", "set", "lo", "up")
        inside(name, _ipv6_off)
        yield name
    finally:
        _ip("netns", "delete", name)


@contextmanager
def namespaces(labels: Iterable[str]) -> Iterator[dict[str, str]]:
    """Create a namespace for each label; yield their names by label."""
    with ExitStack() as made:
        yield {label: made.enter_context(namespace(label)) for label in labels}


def veth(a: tuple[str, str], z: tuple[str, str], *, mtu: int) -> None:
    """Join (namespace, interface) `a` and `z` by a veth pair, both sides with carrier.

    `mtu` in bytes (L3).
    """
    (a_namespace, a_name), (z_namespace, z_name) = a, z
    _ip(
        "link",
        "add",
        a_name,
        "mtu",
        str(mtu),
        "netns",
        a_namespace,
        "type",
        "veth",
        "peer",
        z_name,
        "mtu",
        str(mtu),
        "netns",
        z_namespace,
    )
    for where, name in (a, z):
        _ip("-n", where, "link", "set", name, "up")
    for where, name in (a, z):
        _wait_until_it_carries(where, name)


def bridge(namespace: str, name: str, ports: Iterable[str]) -> None:
    """Create a switch of these interfaces that forwards immediately and sends no frames itself (no STP)."""
    _ip("-n", namespace, "link", "add", "name", name, "type", "bridge", "mcast_snooping", "0")
    for port in ports:
        _ip("-n", namespace, "link", "set", port, "master", name)
    _ip("-n", namespace, "link", "set", name, "up")


def join_bridge(namespace: str, name: str, port: str) -> None:
    """Add a port to an existing switch."""
    _ip("-n", namespace, "link", "set", port, "master", name)


def add_address(namespace: str, interface: str, address: str) -> None:
    """Add `address`, with its prefix length, such as 10.0.0.1/24."""
    _ip("-n", namespace, "address", "add", address, "dev", interface)


def set_mtu(namespace: str, interface: str, mtu: int) -> None:
    """Set an MTU in bytes (L3). A switch drops larger packets at the outgoing port without notice."""
    _ip("-n", namespace, "link", "set", interface, "mtu", str(mtu))


def _wait_until_it_carries(namespace: str, interface: str) -> None:
    """Wait until the kernel considers the interface up (RFC 2863).

    The side that came up first had no carrier then. Until the kernel has noticed the carrier, the interface
    takes frames and drops them silently.
    """
    for _ in range(500):
        if " state UP " in _ip("-n", namespace, "-oneline", "link", "show", interface):
            return
        time.sleep(0.01)
    raise TimeoutError(f"{interface} in {namespace} has had no carrier for 5 s")


def remove_leftovers() -> None:
    """Delete namespaces whose process died without a cleanup."""
    if not _FOLDER.is_dir():
        return
    for entry in _FOLDER.iterdir():
        found = _NAME.fullmatch(entry.name)
        if found and not Path("/proc", found[1]).exists():
            _ip("netns", "delete", entry.name)


def inside(name: str, do: Callable[[], T]) -> T:
    """Call `do` in the namespace. A socket opened there stays there.

    setns(2) moves one thread. Therefore a separate thread enters the namespace and ends.
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
    # /proc/sys/net shows the namespace of the thread that opens it.
    for scope in ("all", "default"):
        path = Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6")
        if path.exists():
            path.write_text("1")


def _ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout
