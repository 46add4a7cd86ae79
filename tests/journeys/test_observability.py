"""One request's id in the logs of web, worker and both agents, and the metrics of all processes."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from devstack import packages
from devstack.client import Client
from devstack.folders import ROOT
from devstack.stack import Stack
from tests.journeys.test_order_to_traffic import an_order

DASHBOARD = ROOT / "deploy" / "grafana" / "longline.json"
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
# Prometheus itself makes these metrics.
OF_PROMETHEUS = {"up"}
SCRAPE_VALID_S = 120
# Metrics that appear only after certain events, which do not happen in a healthy stack.
RARE = {
    "longline_end_policed_frames_total",
    "longline_end_policed_bytes_total",
}


@pytest.fixture(scope="module")
def watched(live_stack: Stack) -> Stack:
    live_stack.portal.start_metrics(live_stack.family)
    return live_stack


def log_lines(stack: Stack, name: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON lines of a process's log, without a program's banner."""
    for line in (stack.portal.logs / f"{name}.log").read_text(errors="replace").splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def test_a_requests_id_follows_its_order_from_the_web_to_both_agents(watched: Stack) -> None:
    request_id = "order-of-alice-0001"
    api = httpx.Client(
        base_url=watched.url,
        headers={"Authorization": f"Bearer {watched.loaded['customer_token']}", "X-Request-Id": request_id},
        trust_env=False,
    )
    with api:
        answer = api.post("/api/v1/vlls", json=an_order(watched, vlan=710))
    assert answer.status_code == 202
    assert answer.headers["X-Request-Id"] == request_id
    alice = watched.client("customer")
    alice.wait_completed(answer.json()["order"]["id"], timeout_s=30)

    (request,) = [line for line in log_lines(watched, "web") if line.get("request_id") == request_id]
    assert (request["method"], request["path"], request["status"]) == ("POST", "/api/v1/vlls", 202)
    sent = [line for line in log_lines(watched, "worker") if request_id in line.get("request_ids", [])]
    assert {line["router"] for line in sent} == {"rhino", "hippo"}
    for router in ("rhino", "hippo"):
        taken = [
            line
            for line in log_lines(watched, f"agent-{router}")
            if request_id in line.get("request_ids", [])
        ]
        assert taken, f"{router}'s agent never got {request_id}"
        assert taken[-1]["generation"] in {line["generation"] for line in sent if line["router"] == router}
    alice.wait_completed(alice.remove(answer.json()["vll"]["id"]), timeout_s=30)


def test_every_line_of_every_log_is_json(watched: Stack) -> None:
    for name in ("web", "agent-api", "beat", "agent-rhino", "agent-hippo", "metrics"):
        text = (watched.portal.logs / f"{name}.log").read_text(errors="replace")
        other = [line for line in text.splitlines() if not line.startswith("{")]
        # Celery greets on its standard output before it logs.
        assert name == "beat" or other == [], f"{name}: {other[:3]}"


def families(text: str) -> dict[str, str]:
    """Return the type of each metric by its name in queries."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name] = family.type
    return found


def scrape(watched: Stack) -> str:
    urls = [f"{watched.portal.metrics_url}/metrics", f"{watched.portal.metrics_url}/metrics/processes"]
    urls += [f"{url}/metrics" for url in watched.agent_metrics_urls.values()]
    return "\n".join(httpx.get(url, trust_env=False).raise_for_status().text for url in urls)


def test_promtool_accepts_the_metrics_of_a_running_product(watched: Stack) -> None:
    urls = [f"{watched.portal.metrics_url}/metrics", f"{watched.portal.metrics_url}/metrics/processes"]
    urls += [f"{url}/metrics" for url in watched.agent_metrics_urls.values()]
    for url in urls:
        scraped = httpx.get(url, trust_env=False).raise_for_status().text
        packages.run_promtool("check", "metrics", stdin=scraped)


def test_requests_and_tasks_of_all_processes_are_added_up(watched: Stack) -> None:
    alice = watched.client("customer")
    accepted = alice.order(**an_order(watched, vlan=711))
    alice.wait_completed(accepted.order, timeout_s=30)
    text = httpx.get(f"{watched.portal.metrics_url}/metrics/processes", trust_env=False).text
    totals: dict[tuple[str, ...], float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            totals[(sample.name, *sorted(sample.labels.values()))] = sample.value
    assert totals["longline_http_requests_total", "202", "POST", "api/v1/vlls"] >= 1
    assert totals["longline_http_request_duration_seconds_count", "POST", "api/v1/vlls"] >= 1
    # The agents' reports, counted by the agent API.
    assert totals["longline_http_requests_total", "200", "POST", "api/agent/v1/observed"] >= 1
    assert totals["longline_task_ends_total", "provisioning.converge_router", "success"] >= 1
    alice.wait_completed(alice.remove(accepted.vll), timeout_s=30)


def names_in(expression: str) -> set[str]:
    return set(re.findall(r"\b(longline_[a-z0-9_]+|up)\b", expression))


def expressions() -> Iterator[tuple[str, str]]:
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", []):
            yield f"panel {panel['title']}", target["expr"]
    for match in re.finditer(
        r"alert: (\w+)\n\s+expr: (?:>-\n)?((?:.(?!\n\s+(?:for|labels):))+.)", ALERTS.read_text(), re.S
    ):
        yield f"alert {match[1]}", match[2]


def test_every_expression_of_dashboard_and_alerts_names_existing_metrics(
    watched: Stack, alice: Client
) -> None:
    accepted = alice.order(**an_order(watched, vlan=712))
    alice.wait_completed(accepted.order, timeout_s=30)
    queries = list(expressions())
    assert len(queries) > 50

    def absent() -> dict[str, set[str]]:
        there = set(families(scrape(watched))) | OF_PROMETHEUS | RARE
        return {where: names - there for where, text in queries if (names := names_in(text)) - there}

    # The figures of an earlier scrape stay valid for a while, on a slow machine for a long one.
    alice.wait(lambda: absent() == {}, timeout_s=SCRAPE_VALID_S)
    assert absent() == {}
    assert all(names_in(text) for _, text in queries)
    alice.wait_completed(alice.remove(accepted.vll), timeout_s=30)


@pytest.fixture
def alice(watched: Stack) -> Client:
    return watched.client("customer")


def test_the_public_servers_show_no_metrics_to_strangers(watched: Stack) -> None:
    for path in ("/metrics", "/metrics/processes"):
        assert httpx.get(f"{watched.url}{path}", trust_env=False).status_code == 404


def test_health_and_readiness_are_public(watched: Stack) -> None:
    assert httpx.get(f"{watched.url}/healthz", trust_env=False).text == "ok\n"
    ready = httpx.get(f"{watched.url}/readyz", trust_env=False)
    assert (ready.status_code, ready.json()["migrations"]) == (200, "applied")


def test_there_are_as_many_metrics_files_as_processes_ran_at_once(watched: Stack) -> None:
    """A restarted process continues the file of one that ended, so files do not accumulate."""
    folder: Path = watched.portal.folder / "metrics"
    before = len(list(folder.glob("slot-*")))
    watched.family["web"].stop()
    watched.family["web"].restart()
    assert len(list(folder.glob("slot-*"))) <= before + 1
