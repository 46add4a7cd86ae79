"""The portal disconnects clients that send their request byte by byte, and serves all others."""

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from devstack.process import LOOPBACK
from tests.integration.gunicorn_server import server

THREADS = 2
CONFIG = f"""
from portal.processes import gunicorn_common
gunicorn_common.REQUEST_S = 3.0
from portal.processes.gunicorn_web import *
threads = worker_connections = {THREADS}
workers = 1
"""
APP = """
def app(environ, start_response):
    environ["wsgi.input"].read()
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
"""


LIVE_CONFIG = """
from portal.processes.gunicorn_live import *
wsgi_app = "stub:app"
keepalive = 1
asgi_lifespan = "off"
"""
LIVE_APP = """
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})
"""


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with server(tmp_path_factory.mktemp("server"), CONFIG, APP) as number:
        yield number


def request(port: int) -> bytes:
    with socket.create_connection((LOOPBACK, port), timeout=60) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        return connection.recv(12)


@pytest.mark.parametrize(
    "begun",
    [b"GET / HTTP/1.1\r\nHost: x\r\nX: ", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n"],
    ids=["headers", "body"],
)
def test_client_that_sends_a_request_slowly_is_disconnected_and_blocks_no_thread(
    port: int, begun: bytes
) -> None:
    enough = threading.Event()
    cut: list[bool] = []

    def trickle() -> None:
        with socket.create_connection((LOOPBACK, port), timeout=0.2) as connection:
            connection.sendall(begun)
            # Few enough bytes for every size limit, and frequent enough for the limit of silence.
            for _ in range(600):
                try:
                    connection.sendall(b"x")
                    if connection.recv(1000) == b"":
                        cut.append(True)
                        return
                except TimeoutError:
                    if enough.is_set():
                        return
                except OSError:
                    cut.append(True)
                    return

    slow = [threading.Thread(target=trickle) for _ in range(THREADS)]
    for each in slow:
        each.start()
    time.sleep(0.5)
    try:
        assert request(port) == b"HTTP/1.1 200"
    finally:
        for each in slow:
            each.join(60)
        enough.set()
    assert cut == [True] * THREADS


def test_client_that_sends_headers_slowly_to_the_live_process_is_disconnected(tmp_path: Path) -> None:
    """The loop has room for thousands of connections, and gunicorn alone would keep this one indefinitely."""
    with (
        server(tmp_path, LIVE_CONFIG, LIVE_APP) as port,
        socket.create_connection((LOOPBACK, port), timeout=30) as slow,
    ):
        slow.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX: ")
        assert slow.recv(1000) == b""
        assert request(port) == b"HTTP/1.1 200"
