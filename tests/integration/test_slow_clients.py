"""Clients that send their request byte by byte: they are shown the door, and everybody else is served."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from devstack.ports import LOOPBACK, accepts, free_ports

THREADS = 2
# Gunicorn's own worker class in front of a stub: what is measured is the door, not the portal behind it.
SERVER = """
from portal import impatience
impatience.REQUEST_S = 3.0
from portal.gunicorn_web import ImpatientWorker
bind = "{host}:{port}"
worker_class = ImpatientWorker
threads = {threads}
workers = 1
control_socket_disable = True
loglevel = "critical"
def app(environ, start_response):
    environ["wsgi.input"].read()
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
"""


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    (number,) = free_ports(1)
    folder = tmp_path_factory.mktemp("door")
    (folder / "door.py").write_text(SERVER.format(host=LOOPBACK, port=number, threads=THREADS))
    process = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", "--config", "door.py", "door:app"],
        env=os.environ | {"PYTHONPATH": f"{Path(__file__).parents[2]}:{folder}"},
        cwd=folder,
    )
    try:
        deadline = time.monotonic() + 30
        while not accepts(number):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield number
    finally:
        process.terminate()
        process.wait(20)


def ask(port: int) -> bytes:
    with socket.create_connection((LOOPBACK, port), timeout=60) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        return connection.recv(12)


@pytest.mark.parametrize(
    "begun",
    [b"GET / HTTP/1.1\r\nHost: x\r\nX: ", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n"],
    ids=["headers", "body"],
)
def test_who_trickles_a_request_is_cut_off_and_holds_no_thread(port: int, begun: bytes) -> None:
    enough = threading.Event()
    cut: list[bool] = []

    def trickle() -> None:
        with socket.create_connection((LOOPBACK, port), timeout=0.2) as connection:
            connection.sendall(begun)
            # As many bytes as keep it below every limit of size, and above the limit of silence.
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
        assert ask(port) == b"HTTP/1.1 200"
    finally:
        for each in slow:
            each.join(60)
        enough.set()
    assert cut == [True] * THREADS
