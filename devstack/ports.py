"""Free TCP ports on loopback."""

import random
import socket
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

LOOPBACK = "127.0.0.1"

_OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")
_RESERVATIONS = ExitStack()


def free_ports(count: int) -> list[int]:
    """`count` different ports that nothing listens on and that stay this process's own until it ends.

    A server binds its port seconds after it was drawn. Until then, the kernel gives it to no outgoing
    connection, and no other process that draws here gets it. Raises OSError where too few are free.
    """
    candidates = _candidates()
    random.shuffle(candidates)
    drawn = list(islice(filter(_reserve, candidates), count))
    if len(drawn) < count:
        raise OSError(f"only {len(drawn)} of {count} ports are free on {LOOPBACK}")
    return drawn


def accepts(port: int, address: str = LOOPBACK) -> bool:
    """True when something on this machine accepts a connection to `port`."""
    try:
        socket.create_connection((address, port), timeout=0.5).close()
    except OSError:
        return False
    return True


def _candidates() -> list[int]:
    """Ports that no outgoing connection is given, see ip_local_port_range in Linux' ip-sysctl.

    From 20,000 on: browsers refuse some below, and well-known services have theirs there.
    """
    first, last = map(int, _OUTGOING.read_text().split())
    return [port for port in range(20_000, 65_536) if not first <= port <= last]


def _reserve(port: int) -> bool:
    """By an abstract Unix socket: like ports, one name belongs to one process of a network namespace."""
    with ExitStack() as held:
        mark = held.enter_context(socket.socket(socket.AF_UNIX))
        try:
            mark.bind(f"\0longline-port-{port}")
            with socket.socket() as probe:
                probe.bind((LOOPBACK, port))
        except OSError:
            return False
        _RESERVATIONS.push(held.pop_all())
    return True
