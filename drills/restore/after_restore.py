"""Checks of a restored database. They follow the operator's guide and use the portal, VPP and SQL."""

import re
import time
from dataclasses import dataclass

from drills.checks.checker import TERMINAL, Checker, wait
from drills.checks.double_bookings import double_bookings
from drills.checks.expected_configuration import flaws, strays
from drills.restore.installation import Installation
from drills.restore.ordering import Noted
from drills.restore.router_contents import (
    Configs,
    all_lines,
    booked_twice,
    forwarding,
    lines_of,
    lost_interfaces,
)
from drills.restore.seeded_lines import seeded_digest
from drills.restore.steps import Steps

ALARM_WITHIN_S, REST_WITHIN_S = 60, 120
# Seconds after which the drill assumes that an order has reached the routers.
REACHES_ROUTERS_WITHIN_S = 30
_ALARMED = """
SELECT count(DISTINCT router_id) FROM events_event
WHERE kind = 'router.behind_agent' AND at > to_timestamp(%s)
"""
_OPEN = "SELECT count(*) FROM vll_order WHERE NOT state = ANY(%s)"
_ROUTER = re.compile(r"(\S+) has generation ")
_ROW = re.compile(r"  (\w+) +(\S+) ([az])(?:: (.*))?")
Row = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What should be found after the restore.

    * ``configs``: the configurations of the VPPs after the portal was stopped and before the restore.
    * ``kept``: accepted orders that the restored database must contain.
    * ``later``: accepted orders that may be lost.
    * ``removed``: lines that were removed after the backup. The restored database wants them again.
    * ``seeded``: the number and the digest of the seeded lines.
    * ``in_service``: the lines in service at the time ``lost_at``, when the old database accepted its last
      order.
    """

    configs: Configs
    kept: list[Noted]
    later: list[Noted]
    removed: set[str]
    seeded: tuple[int, str]
    lost_at: float
    in_service: set[str]


def database_check(steps: Steps, at: Installation, expected: Expected) -> None:
    """Check that the orders from before the backup exist. Report how many of the later orders are lost."""
    with steps.step("lines") as step, at.checker() as checker:
        known = {line for (line,) in checker.sql("SELECT id::text FROM vll_vll")}
        missing = [each.vll for each in expected.kept if each.vll not in known]
        step.require(not missing, f"accepted before the backup, and not in it: {missing}")
        seeded = seeded_digest(at.database_url)
        step.require(seeded == expected.seeded, f"seeded lines are {seeded}, and were {expected.seeded}")
        lost = [each for each in expected.later if each.vll not in known]
        on_routers = all_lines(expected.configs)
        traceless = [each for each in lost if each.vll not in on_routers]
        old = [each for each in traceless if each.accepted_at < expected.lost_at - REACHES_ROUTERS_WITHIN_S]
        shut = [line for line in sorted(expected.in_service) if not forwarding(expected.configs, line)]
        step.require(not shut, f"in service before the end, and not forwarding now: {shut}")
        step.require(not old, f"accepted long before the end, and on no router: {old}")
        step.found = (
            f"{seeded[0]} seeded lines and {len(expected.kept)} ordered before are there; of"
            f" {len(expected.later)} ordered later {len(lost)} are not: {len(lost) - len(traceless)} are on"
            f" routers, {len(traceless)} were not there yet"
        )


def portal_start(steps: Steps, at: Installation) -> None:
    """Start the portal. Check that it reports to the NOC that both agents are ahead."""
    began = time.time()
    with steps.step("start") as step, at.checker() as checker:
        at.stack.portal.manage("upgrade")
        at.processes_start()
        up = time.time()
        alarmed_in_time = wait(lambda: checker.sql(_ALARMED, began)[0][0] == 2, timeout_s=ALARM_WITHIN_S)
        step.require(alarmed_in_time, f"no alarm about both routers within {ALARM_WITHIN_S} s")
        alarmed = time.time() - up
        step.found = (
            f"web responds after {up - began:.1f} s,"
            f" the NOC has alarms about both agents {alarmed:.1f} s later"
        )


def quarantine_list(steps: Steps, at: Installation, expected: Expected) -> None:
    """Check the portal's list of lines that exist only on routers: the routers, the VNIs and the ids."""
    with steps.step("preview") as step, at.checker() as checker:
        listing = at.stack.portal.manage("reconcile", "--dry-run", "--all")
        with (at.logs / "preview.txt").open("a") as kept:
            kept.write(listing)
        rows = _rows(listing)
        listed = {(router, line, what) for router, (kind, line, _), what in rows if kind == "quarantined"}
        wanted = wanted_lines(checker)
        unknown = _unknown(expected.configs, wanted)
        step.require(listed == unknown, f"quarantined, and not listed so: {sorted(listed ^ unknown)}")
        making = {line for _, (kind, line, _), _ in rows if kind == "make"}
        removed = {line for line in expected.removed if line in wanted}
        step.require(removed <= making, f"wanted again, and not listed so: {removed - making}")
        whole = {line for _, line, _ in listed if forwarding(expected.configs, line)}
        step.found = (
            f"{len({line for _, line, _ in listed})} lines quarantined, of which {len(whole)} forward, with"
            f" interfaces and VNIs in {len(listed)} ends; {len(making)} lines would be made again"
        )


def reconcile(steps: Steps, at: Installation) -> None:
    """Confirm all routers as the NOC does, until no router waits for a confirmation."""
    with steps.step("reconcile") as step, at.checker() as checker:
        at.stack.portal.manage("reconcile", "--all")
        done = wait(lambda: not _unrest(at, checker), timeout_s=REST_WITHIN_S)
        step.require(done, f"no rest within {REST_WITHIN_S} s: {_unrest(at, checker)[:5]}")
        step.found = f"{len(at.configs())} routers, and no order is open"


def promises_check(steps: Steps, at: Installation, expected: Expected, *, taken_away: set[str]) -> None:
    """Check that the routers have lost only what the drill has removed, and that nothing is booked twice."""
    with steps.step("check") as step, at.checker() as checker:
        configs = at.configs()
        lost = lost_interfaces(expected.configs, configs, except_for=taken_away)
        step.require(not lost, "; ".join(lost[:10]))
        with checker.connect() as database:
            twice = double_bookings(database) + booked_twice(configs)
        step.require(not twice, "; ".join(twice[:10]))
        wanted = wanted_lines(checker)
        unknown, before = _unknown(configs, wanted), _unknown(expected.configs, wanted)
        step.require(unknown == before, f"quarantined otherwise than before: {sorted(unknown ^ before)}")
        kept = sum(len(config.tagged()) for config in expected.configs.values())
        step.found = (
            f"of {kept} interfaces of lines on {len(configs)} routers none was removed, shut or connected"
            f" otherwise; {len({line for _, line, _ in unknown})} lines stay quarantined; no VNI, VLAN,"
            " bandwidth or core is booked twice"
        )


def new_order_check(steps: Steps, at: Installation, line_number: int) -> None:
    """Check that customers can order again."""
    with steps.step("order") as step, at.checker() as checker:
        response = at.dairy.post(at.pairs[line_number].order())
        step.require(
            response.status == 202, f"a new order was answered with {response.status}: {response.body}"
        )
        if response.status == 202:
            states = checker.require_terminal([response.order], within_s=60)
            step.require(states == {response.order: "completed"}, f"a new order ended as {states}")
        step.found = "a new line is accepted and in service"


def wanted_lines(checker: Checker) -> set[str]:
    """Return the lines that should exist on routers according to the database, and the lines that the portal
    still has to delete from routers.
    """
    query = "SELECT id::text FROM vll_vll WHERE lifecycle NOT IN ('terminated', 'cancelled')"
    return {line for (line,) in checker.sql(query)}


def _unknown(configs: Configs, wanted: set[str]) -> set[Row]:
    """Return the unwanted ends in VPP. As in the portal's list, each has the router, the line and the
    interfaces.
    """
    found = set()
    for router, lines in lines_of(configs).items():
        config = configs[router]
        keys = {each["index"]: _key(each) for each in config.shown["tunnels"]}
        for line in lines - wanted:
            for side in "az":
                mark = f"longline:{line}:{side}:"
                owned = [each for each in config.tagged(line) if each["tag"].startswith(mark)]
                names = [each["name"] + keys.get(each["index"], "") for each in owned]
                if names:
                    found.add((router, line, ", ".join(names)))
    return found


def _key(tunnel: dict[str, int]) -> str:
    if tunnel["gre_key"]:
        return f" (GRE key {tunnel['gre_key']})"
    return f" (VNI {tunnel['vni']})" if tunnel["vni"] else ""


def _rows(listing: str) -> list[tuple[str, Row, str]]:
    rows, router = [], ""
    for text in listing.splitlines():
        if begins := _ROUTER.match(text):
            router = begins[1]
        elif row := _ROW.fullmatch(text):
            rows.append((router, (row[1], row[2], row[3]), row[4] or ""))
    return rows


def _unrest(at: Installation, checker: Checker) -> list[str]:
    """Return sentences about open orders, and about ends in VPP that differ from the database."""
    [(open_orders,)] = checker.sql(_OPEN, list(TERMINAL))
    if open_orders:
        return [f"{open_orders} orders are open"]
    configs = at.configs()
    ends = [end for end in checker.wanted() if end.router in configs]
    wanted = {str(end.vll) for end in ends}
    odd = [each for each in strays(ends, configs) if any(line in each for line in wanted)]
    return flaws(ends, configs) + odd
