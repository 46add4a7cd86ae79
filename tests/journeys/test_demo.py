"""`make demo` as a user sees it who types it, waits and presses Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx

from devstack.folders import ROOT
from devstack.process import accepts

FACTS = {"url", "customer_token", "noc_token", "customer_login", "noc_login", "vll", "dataplane"}


def test_the_demo_starts_with_a_vll_that_carries_traffic_and_stops_without_leftovers(
    tmp_path: Path,
) -> None:
    environment = os.environ | {"LONGLINE_RUN_DIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-m", "devstack.demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env=environment,
    ) as demo:
        assert demo.stdout is not None
        lines = []
        for line in demo.stdout:
            lines.append(line)
            if line.startswith("demo ready "):
                break
        try:
            assert lines, "the demo printed nothing"
            assert lines[-1].startswith("demo ready "), "".join(lines)
            url = lines[-1].split()[2]
            facts = json.loads((tmp_path / "demo.json").read_text())
            assert set(facts) == FACTS
            assert facts["url"] == url
            assert facts["dataplane"] == "vppsim" or facts["dataplane"].startswith("vpp ")
            assert set(facts["customer_login"]) == set(facts["noc_login"]) == {"username", "password"}
            for owner in ("customer", "noc"):
                vll = _get(facts, owner, f"/api/v1/vlls/{facts['vll']}")
                assert vll["lifecycle"] == "active"
            series = _get(facts, "customer", f"/api/v1/vlls/{facts['vll']}/throughput")
            for end in ("a_end", "z_end"):
                assert any(into and out for _, into, out in series[end])
            free = _free_ports(facts)
            assert {port["router"] for port in free} >= {"rhino", "hippo"}
        finally:
            demo.send_signal(signal.SIGINT)
            rest = demo.stdout.read()
    assert demo.returncode == 0, rest
    assert not (tmp_path / "demo.json").exists()
    assert not accepts(httpx.URL(url).port or 80)


def _get(facts: dict[str, str], owner: str, path: str) -> dict:
    headers = {"Authorization": f"Bearer {facts[f'{owner}_token']}"}
    answer = httpx.get(facts["url"] + path, headers=headers, trust_env=False, timeout=60)
    return answer.raise_for_status().json()


def _free_ports(facts: dict[str, str]) -> list[dict]:
    """Return the customer's ports without bookings, on which a visitor can order."""
    return [port for port in _get(facts, "customer", "/api/v1/ports")["results"] if not port["booked_bps"]]
