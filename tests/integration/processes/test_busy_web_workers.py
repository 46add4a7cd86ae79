"""A request goes to the first free process and never waits behind requests of a busy one."""

import http.client
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from devstack.process import LOOPBACK
from portal.processes import gunicorn_web
from tests.integration.gunicorn_server import server

PROCESSES = 2
CONFIG = f"""
from portal.processes.gunicorn_web import *
workers = {PROCESSES}
"""
# A slow request creates a file at its start, and ends on a signal file, after a minute at the latest.
APP = """
import time
from pathlib import Path
def app(environ, start_response):
    name = environ["PATH_INFO"].strip("/")
    if name:
        Path("begun-" + name).touch()
        deadline = time.monotonic() + 60
        while not Path("release").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
    start_response("200 OK", [("Content-Length", "0")])
    return []
"""


def ask(port: int, path: str, timeout: float) -> int:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=timeout)
    connection.request("GET", path)
    return connection.getresponse().status


def test_one_free_thread_in_any_process_serves_all_requests(tmp_path: Path) -> None:
    busy = PROCESSES * gunicorn_web.threads - 1
    with ThreadPoolExecutor(busy) as clients, server(tmp_path, CONFIG, APP) as port:
        slow = [clients.submit(ask, port, f"/{number}", 120) for number in range(busy)]
        try:
            deadline = time.monotonic() + 20
            while len(list(tmp_path.glob("begun-*"))) < busy:
                assert time.monotonic() < deadline, "one waits behind others though a thread is free"
                time.sleep(0.05)
            assert [ask(port, "/", 20) for _ in range(30)] == [200] * 30
        finally:
            (tmp_path / "release").touch()
        assert [one.result(60) for one in slow] == [200] * busy
