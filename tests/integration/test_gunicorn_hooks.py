"""Each process of a server has what gunicorn's hooks in its settings do (portal.processes)."""

import gc
import http.client
import json
from typing import Any

import pytest

from devstack.tcp_ports import LOOPBACK
from portal.processes.gunicorn_web import SWITCH_INTERVAL_S
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
import sys
imported = [[] for _ in range({IMPORTED})]
def app(environ, start_response):
    told = {{
        "looked_through": len(gc.get_objects()),
        "frozen": gc.get_freeze_count(),
        "thresholds": gc.get_threshold(),
        "switch_interval_s": sys.getswitchinterval(),
    }}
    body = json.dumps(told).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What a process of each says of itself."""
    certificates()
    told = {}
    for name, config in CONFIGS.items():
        with server(tmp_path_factory.mktemp("server"), config, APP) as port:
            connection = http.client.HTTPConnection(LOOPBACK, port, timeout=20)
            connection.request("GET", "/")
            told[name] = json.loads(connection.getresponse().read())
    return told


@pytest.mark.parametrize("name", CONFIGS)
def test_only_what_requests_make_is_looked_through_for_garbage(
    told: dict[str, dict[str, Any]], name: str
) -> None:
    assert told[name]["frozen"] > IMPORTED
    assert told[name]["looked_through"] < IMPORTED


@pytest.mark.parametrize("name", CONFIGS)
def test_garbage_is_looked_for_more_often_than_while_a_process_starts(
    told: dict[str, dict[str, Any]], name: str
) -> None:
    """What is not found for long makes a process grow: some 60,000 objects after 700 orders."""
    assert all(now <= start for now, start in zip(told[name]["thresholds"], gc.get_threshold(), strict=True))
    assert told[name]["thresholds"][0] < gc.get_threshold()[0]


def test_web_processes_have_a_short_switch_interval(told: dict[str, dict[str, Any]]) -> None:
    assert told["web"]["switch_interval_s"] == pytest.approx(SWITCH_INTERVAL_S)
    assert told["agent API"]["switch_interval_s"] > SWITCH_INTERVAL_S, "Python's own is short enough now"
