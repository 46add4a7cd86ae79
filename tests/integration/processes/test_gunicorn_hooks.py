"""Each process of a server has the settings of gunicorn's hooks (portal.processes)."""

import gc
import http.client
import json
from typing import Any

import pytest

from devstack.process import LOOPBACK
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
    state = {{
        "tracked": len(gc.get_objects()),
        "frozen": gc.get_freeze_count(),
        "thresholds": gc.get_threshold(),
        "switch_interval_s": sys.getswitchinterval(),
    }}
    body = json.dumps(state).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""


@pytest.fixture(scope="module")
def state_of(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return the state that a process of each server reports."""
    certificates()
    states = {}
    for name, config in CONFIGS.items():
        with server(tmp_path_factory.mktemp("server"), config, APP) as port:
            connection = http.client.HTTPConnection(LOOPBACK, port, timeout=20)
            connection.request("GET", "/")
            states[name] = json.loads(connection.getresponse().read())
    return states


@pytest.mark.parametrize("name", CONFIGS)
def test_garbage_collection_covers_only_objects_of_requests(
    state_of: dict[str, dict[str, Any]], name: str
) -> None:
    assert state_of[name]["frozen"] > IMPORTED
    assert state_of[name]["tracked"] < IMPORTED


@pytest.mark.parametrize("name", CONFIGS)
def test_garbage_is_collected_more_often_than_during_the_start(
    state_of: dict[str, dict[str, Any]], name: str
) -> None:
    """Late collection makes a process grow: by some 60,000 objects after 700 orders."""
    assert all(
        now <= start for now, start in zip(state_of[name]["thresholds"], gc.get_threshold(), strict=True)
    )
    assert state_of[name]["thresholds"][0] < gc.get_threshold()[0]


def test_web_processes_have_a_short_switch_interval(state_of: dict[str, dict[str, Any]]) -> None:
    assert state_of["web"]["switch_interval_s"] == pytest.approx(SWITCH_INTERVAL_S)
    assert state_of["agent API"]["switch_interval_s"] > SWITCH_INTERVAL_S, (
        "Python's default is short enough now"
    )
