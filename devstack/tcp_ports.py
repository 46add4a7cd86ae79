"""Free TCP ports on loopback."""

import errno
import random
import socket
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

LOOPBACK = "127.0.0.1"

# Browsers refuse some of those below, and well-known services have theirs there.
_PORTS = range(20_000, 65_536)
# The first and last of the ports that outgoing connections are given (Linux, ip-sysctl).
_OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")
_ENOUGH = 1000
# Nobody closes it: what is reserved stays so until this process ends.
_RESERVATIONS = ExitStack()


def free_ports(count: int) -> list[int]:
    """`count` different ports that nothing listens on.

    Who draws them binds them seconds later. Until it ends, no other process that draws here gets them, nor
    does an outgoing connection, unless this machine gives those nearly all ports. Raises OSError.
    """
    candidates = _candidates()
    random.shuffle(candidates)
    drawn = list(islice(filter(_reserve, candidates), count))
    if len(drawn) < count:
        raise OSError(errno.EADDRINUSE, f"only {len(drawn)} of {count} ports are free on {LOOPBACK}")
    return drawn


def accepts(port: int, address: str = LOOPBACK) -> bool:
    """True when something on this machine accepts a connection to `port`."""
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
    """By an abstract Unix socket: like ports, one name belongs to one process of a network namespace."""
    with ExitStack() as held:
        mark = held.enter_context(socket.socket(socket.AF_UNIX))
        try:
            mark.bind(f"\0longline-port-{port}")
            with socket.socket() as probe:
                probe.bind((LOOPBACK, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
        _RESERVATIONS.push(held.pop_all())
    return True
