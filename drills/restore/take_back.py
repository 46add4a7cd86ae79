"""The adoption of a quarantined line without an interruption: remove the tags, release the ends, find the
line, adopt the line.
"""

import subprocess
from pathlib import Path
from typing import Any

from devstack.client import Json
from devstack.folders import BUILD
from drills.checks.checker import wait
from drills.checks.vpptestctl import VppConfig, VppTestctl
from drills.restore.after_restore import wanted_lines
from drills.restore.installation import Installation
from drills.restore.router_contents import Configs, all_lines, forwarding
from drills.restore.steps import Steps

FOUND_WITHIN_S = 60


def take_back(steps: Steps, at: Installation) -> None:
    """Adopt the first quarantined line that connects two routers."""
    before = at.configs()
    with at.checker() as checker:
        quarantined = all_lines(before) - wanted_lines(checker)
    line = next((each for each in sorted(quarantined) if _has_two_tunnels(before, each)), None)
    with steps.step("take-back") as step:
        step.require(line is not None, "no quarantined line leads from router to router")
        if line is None:
            return
        for agent in at.stack.agents:
            vpp = VppTestctl(at.stack.sockets[agent.router].api)
            owned = before[agent.router].tagged(line)
            for each in owned:
                vpp.untag(each["name"])
            end = owned[0]["tag"].split(":")[2]
            _agent(agent.folder / "agent.yaml", "release", "-vll", line, "-end", end)
        key = _key(before, line)
        found: list[Json] = []

        def is_found() -> bool:
            found[:] = [each for each in noc.found_lines() if each["key"] == key and not each["odd"]]
            return bool(found)

        noc = at.stack.client("noc")
        step.require(wait(is_found, timeout_s=FOUND_WITHIN_S), f"{line} is not among the found lines")
        if not found:
            return
        taken = noc.adopt(found[0]["id"], description="taken back", svc_mtu=1500, cir_bps=1_000_000)
        noc.wait_completed(taken.order, timeout_s=60)
        after = at.configs()
        step.require(forwarding(after, taken.vll), f"{line}, now {taken.vll}, does not forward")
        step.require(line not in all_lines(after), f"{line} is still there under its old id")
        touched = _places(before, line) ^ _places(after, taken.vll)
        step.require(not touched, f"not only tags were changed: {sorted(touched, key=str)}")
        step.found = f"a quarantined line (VNI {key}) is the portal's again; only its tags have changed"


def _has_two_tunnels(configs: Configs, line: str) -> bool:
    return forwarding(configs, line) and all(_tunnels(config, line) for config in configs.values())


def _tunnels(config: VppConfig, line: str) -> list[dict[str, Any]]:
    owned = {each["index"] for each in config.tagged(line)}
    return [each for each in config.shown["tunnels"] if each["index"] in owned]


def _key(configs: Configs, line: str) -> int:
    [tunnel, *_] = [each for config in configs.values() for each in _tunnels(config, line)]
    key: int = tunnel["vni"] or tunnel["gre_key"]
    return key


def _places(configs: Configs, line: str) -> set[tuple[Any, ...]]:
    """Return each interface of the line together with its cross-connect."""
    return {
        (router, each["index"], each["name"], each["admin_up"], config.connects.get(each["index"]))
        for router, config in configs.items()
        for each in config.tagged(line)
    }


def _agent(config: Path, command: str, *arguments: str) -> None:
    subprocess.run(
        [str(BUILD / "longline-agent"), command, *arguments, "-config", str(config)],
        check=True,
        capture_output=True,
        timeout=60,
    )
