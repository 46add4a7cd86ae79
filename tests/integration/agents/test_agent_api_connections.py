"""Agents keep their connections open: the server keeps all of them too, spread over its processes."""

import resource
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from devstack.process import LOOPBACK
from tests.integration.certificates import certificates
from tests.integration.gunicorn_server import server

AGENTS, DEALT = 1200, 64
# Without TLS, because thousands of handshakes would test the CPU, and without the portal behind the server.
CONFIG = """
from portal.processes.gunicorn_agent_api import *
del post_worker_init
certfile = keyfile = ca_certs = None
cert_reqs = 0
workers = {workers}
"""
APP = """
import os
def app(environ, start_response):
    body = f"{os.getpid()}.".encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""


@pytest.fixture(autouse=True)
def _files() -> Iterator[None]:
    certificates()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def connect(port: int) -> socket.socket:
    return socket.create_connection((LOOPBACK, port), timeout=60)


def ask(connection: socket.socket) -> str:
    """Return the id of the responding process; the process says when it closes the connection."""
    connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
    answer = b""
    while not answer.endswith(b"."):
        piece = connection.recv(4096)
        assert piece, "closed"
        answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"connection: close" not in head.lower()
    return body.decode()


def test_process_keeps_the_connections_of_all_agents(tmp_path: Path) -> None:
    with server(tmp_path, CONFIG.format(workers=1), APP) as port, ExitStack() as stack:
        connections = [stack.enter_context(connect(port)) for _ in range(AGENTS)]
        first = [ask(connection) for connection in connections]
        assert [ask(connection) for connection in connections] == first


def dealt(port: int) -> Counter[str]:
    """Return how many of ``DEALT`` new connections each process gets."""
    with ExitStack() as stack:
        connections = [stack.enter_context(connect(port)) for _ in range(DEALT)]
        return Counter(map(ask, connections))


def test_new_connections_are_distributed_evenly(tmp_path: Path) -> None:
    with server(tmp_path, CONFIG.format(workers=2), APP) as port:
        deadline = time.monotonic() + 60
        while len(dealt(port)) < 2 and time.monotonic() < deadline:
            pass
        # Counted only now: the second process may have begun to listen in the middle of the last ones.
        counts = dealt(port)
        # The kernel distributes by hash; a smaller share has a probability of one in a million.
        assert min(counts.values()) > DEALT / 5
        assert len(counts) == 2
