"""What a server imports before it forks is not looked through for garbage again, in any of its processes."""

import http.client
import json
from pathlib import Path

import pytest

from devstack.ports import LOOPBACK
from tests.integration.certificates import certificates
from tests.integration.gunicorn_server import server

IMPORTED = 50_000
CONFIGS = {
    "web": """
from portal.processes.gunicorn_web import *
""",
    "agent API": """
from portal.processes.gunicorn_agent_api import *
del post_worker_init
certfile = keyfile = ca_certs = None
cert_reqs = 0
""",
}
APP = f"""
import gc
import json
imported = [[] for _ in range({IMPORTED})]
def app(environ, start_response):
    body = json.dumps({{"looked_through": len(gc.get_objects()), "frozen": gc.get_freeze_count()}}).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""


@pytest.mark.parametrize("name", CONFIGS)
def test_only_what_requests_make_is_looked_through(tmp_path: Path, name: str) -> None:
    certificates()
    with server(tmp_path, CONFIGS[name], APP) as port:
        connection = http.client.HTTPConnection(LOOPBACK, port, timeout=20)
        connection.request("GET", "/")
        objects = json.loads(connection.getresponse().read())
    assert objects["frozen"] > IMPORTED
    assert objects["looked_through"] < IMPORTED
