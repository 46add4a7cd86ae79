"""The two routers at the ends of all ordered lines. They are real agents with stand-ins for VPP, outside of
all machines.
"""

from devstack.routers.agent import Agent
from devstack.routers.vppsim import SimulatedDataplane
from drills.ha.cluster import VIRTUAL_IP, WORLD_ADDRESS, Cluster, wait

REPORT_INTERVAL_S = 10
_REPORTED = "SELECT count(*) FROM inventory_observedrouter WHERE vpp_connected"


def start_agents(cluster: Cluster) -> None:
    """Start the agents and wait for their reports.

    Without a report, the portal refuses orders for lines that use the router.
    """
    dataplane = SimulatedDataplane(cluster.isp, cluster.folder / "vppsim", cluster.logs, cluster.family)
    pki = cluster.machines["app1"].root / "var/lib/longline/pki"
    for router in cluster.isp.agents:
        port = 9443 + router.number
        agent = Agent(
            router=router.name,
            address=WORLD_ADDRESS,
            port=port,
            metrics_port=port + 100,
            folder=cluster.folder / f"agent-{router.name}",
            logs=cluster.logs,
            pki=pki,
            report_url=f"https://{VIRTUAL_IP}:8443",
            report_interval_s=REPORT_INTERVAL_S,
        )
        agent.start(cluster.family, dataplane.start(router))
    wanted = len(cluster.isp.agents)
    wait(lambda: cluster.sql(_REPORTED)[0][0] >= wanted, "the agents' first reports", timeout_s=60)
