"""The network between the portal and a router: a HAProxy for both directions, which can be frozen.

A frozen HAProxy acts like an unplugged cable: all data is lost, and neither side gets an error.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from devstack.packages import TOOLS
from devstack.process import LOOPBACK, Child, Family, accepts
from devstack.routers.agent import Agent

_CONFIGURATION = """\
global
  maxconn 200
defaults
  mode tcp
  timeout connect 5s
  timeout client 1h
  timeout server 1h
listen to-agent
  bind {address}:{agent_side}
  server agent {address}:{agent}
listen to-portal
  bind {address}:{portal_side}
  server portal {address}:{portal}
"""


class HaproxyMissing(Exception):
    """This machine has no haproxy."""


@dataclass(frozen=True, slots=True)
class Cable:
    """A cable between the portal and an agent.

    The portal connects to the agent at ``agent_side``. The agent connects to the portal at ``portal_side``.
    """

    agent_side: int
    portal_side: int


def lay(agent: Agent, *, portal_port: int, ports: tuple[int, int], folder: Path, family: Family) -> Cable:
    """Start a HAProxy between the agent and the portal. Raises HaproxyMissing.

    After that, the caller must configure the agent and the portal to use the HAProxy.
    """
    program = shutil.which("haproxy", path=f"{TOOLS}:/usr/sbin:/usr/bin")
    if program is None:
        raise HaproxyMissing("HAProxy is not installed: apt-get install haproxy")
    cable = Cable(*ports)
    configuration = folder / f"cable-{agent.router}.cfg"
    configuration.write_text(
        _CONFIGURATION.format(
            address=LOOPBACK,
            agent_side=cable.agent_side,
            portal_side=cable.portal_side,
            agent=agent.port,
            portal=portal_port,
        )
    )
    child = Child(
        name=f"cable-{agent.router}",
        argv=[program, "-db", "-f", str(configuration)],
        log=agent.logs / f"cable-{agent.router}.log",
    )
    family.start(child).wait_until(lambda: accepts(cable.agent_side) and accepts(cable.portal_side))
    return cable
