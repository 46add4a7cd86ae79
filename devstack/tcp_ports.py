"""Free TCP ports on loopback."""

import errno
import random
import socket
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

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
