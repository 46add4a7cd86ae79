"""The demo in containers: `python -m devstack.containers seed|order`. docker-compose.yml runs both.

`seed` fills the database and the volume /demo. `order` orders a line and waits until the line carries
traffic. Both commands can run again: they keep everything that exists.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import django

from devstack.client import Client
from devstack.demo_line import facts_write, first_line, logins, private_write
from devstack.isp import Isp, Router, small_isp
from devstack.routers.vpp_containers import router_script, startup_conf, world_script
from devstack.routers.vppsim import config_of

DEMO = Path("/demo")
UNDERLAY = Path("/run/underlay")
FACTS = DEMO / "demo.json"
WEB = "http://web:8000"
AGENT_PORT = 9443
METRICS_PORT = 9470
REPORT_INTERVAL_S = 2
REPORTS_WITHIN_S = 120


def seed() -> None:
    """Write rows, one-time tokens, and the configurations of agents, stand-ins and real VPPs."""
    from devstack.load import load
    from portal.accounts.models import User
    from portal.core import clock
    from portal.inventory import models
    from portal.inventory.certificates import enrolment_offer

    isp = small_isp()
    if models.Router.objects.exists():
        print("the database has routers already: nothing was done")
        return
    for router in isp.agents:
        _write(f"{router.name}.json", json.dumps(config_of(router, isp, UNDERLAY), indent=1))
        _write(f"agent-{router.name}.yaml", _agent_yaml(router))
        _write_vpp(router.name, router_script(router, isp))
    _write_vpp("world", world_script(isp))
    urls = {router.name: f"https://agent-{router.name}:{AGENT_PORT}" for router in isp.agents}
    loaded = load(isp, agent_urls=urls, now=clock.now())
    nina = User.objects.get(username=loaded["noc_login"]["username"])
    for router in isp.agents:
        row = models.Router.objects.get(name=router.name)
        _write(f"{router.name}.token", enrolment_offer(router=row, user=nina, now=clock.now()))
    facts_write(FACTS, loaded)


def order() -> None:
    """Order a line from Rhino to Hippo, unless a line exists."""
    facts: dict[str, Any] = json.loads(FACTS.read_text())
    customer = Client(WEB, facts["customer_token"])
    if "vll" not in facts:
        _wait_for_reports(small_isp(), customer)
        facts["vll"] = first_line(customer, facts["ports"], timeout_s=60)
        facts_write(FACTS, facts)

    if not customer.wait(lambda: customer.carries_traffic(facts["vll"]), timeout_s=60):
        sys.exit(f"no traffic was counted on {facts['vll']} within 60 s")
    print(*logins(facts), sep="\n")
    print(f"demo ready {os.environ['BASE_URL']}", flush=True)


def _agent_yaml(router: Router) -> str:
    return f"""\
router: {router.name}
listen: 0.0.0.0:{AGENT_PORT}
tls:
  ca: /var/lib/longline/tls/ca.pem
  certificate: /var/lib/longline/tls/router.pem
  key: /var/lib/longline/tls/router.key
report:
  url: https://agent-api:8443
  interval: {REPORT_INTERVAL_S}s
metrics:
  listen: 0.0.0.0:{METRICS_PORT}
"""


def _write_vpp(name: str, commands: list[str]) -> None:
    script = DEMO / f"{name}.vpp"
    _write(script.name, "\n".join([*commands, ""]))
    _write(f"{name}.conf", startup_conf(script))


def _wait_for_reports(isp: Isp, client: Client) -> None:
    from portal.inventory.models import ObservedRouter

    def reported() -> bool:
        return ObservedRouter.objects.filter(vpp_connected=True).count() >= len(isp.agents)

    if not client.wait(reported, timeout_s=REPORTS_WITHIN_S):
        sys.exit(f"the agents did not report within {REPORTS_WITHIN_S} s")


def _write(name: str, text: str) -> None:
    """Write a private file. The agents' containers run as the same user."""
    private_write(DEMO / name, text)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()
    {"seed": seed, "order": order}[sys.argv[1]]()
