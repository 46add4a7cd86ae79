"""One storm. After it, the product settles and is checked, and all its lines are removed."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psycopg

from devstack import stack
from devstack.client import Client, Refused
from devstack.databases.postgres import migrated_cluster
from devstack.folders import RUN
from devstack.process import Family, free_ports
from devstack.routers.vpp import CommandRefused
from drills.chaos import cables
from drills.chaos.customers import Customers
from drills.chaos.disks import Disks
from drills.chaos.plan import ROUTERS, Plan
from drills.chaos.processes import Processes
from drills.chaos.routers import Routers, routers
from drills.chaos.storm import Storm
from drills.chaos.timeline import Timeline
from drills.chaos.verdict import Verdict, difference
from drills.checks.vpp_configuration import Configuration
from drills.checks.vpptestctl import VppRefused

REST_WITHIN_S = 120
LATE_WITHIN_S = 180
EMPTY_WITHIN_S = 120
REPORT_INTERVAL_S = 1
_PORTAL = ("worker", "doubtful", "sweeper", "messenger", "beat", "web", "agent-api")
_SETTINGS = {
    "LONGLINE_MIN_CIR_BPS": "1",
    # Round-trip probes would send frames between the routers of lines and leave objects there.
    "LONGLINE_PROBE_EVERY_S": "0",
    # In the storm, each removal states whether it can be undone.
    "LONGLINE_COOLING_OFF_S": "0",
    # One client sends the requests of many customers.
    "LONGLINE_API_WRITES_PER_MIN": "0",
    "LONGLINE_API_READS_PER_MIN": "0",
}


@dataclass
class Outcome:
    """The result of a storm.

    ``open_after_s``: seconds from the end of the last fault until no order was open and all lines were
    settled.
    """

    dataplane: str
    orders: int
    accepted: int
    faults: int
    open_after_s: float = 0.0
    wrong: list[str] = field(default_factory=list)


@dataclass
class Chaos:
    plan: Plan
    timeline: Timeline
    stack: stack.Stack
    routers: Routers
    storm: Storm
    verdict: Verdict

    def run(self) -> Outcome:
        self.timeline.note(f"plan {self.plan.fingerprint}")
        before = {router: self.routers.configuration(router) for router in ROUTERS}
        self.routers.lay_handmade()
        self.storm.rage()
        outcome = Outcome(
            dataplane=self.stack.dataplane.name,
            orders=len(self.plan.steps),
            accepted=len(self.storm.customers.promises),
            faults=self.storm.faults,
        )
        self._come_to_rest(outcome)
        outcome.accepted = len(self.storm.customers.promises)
        outcome.wrong += self._at_rest()
        outcome.wrong += self._emptied(before)
        for sentence in outcome.wrong:
            self.timeline.note(f"WRONG {sentence}")
        return outcome

    def _come_to_rest(self, outcome: Outcome) -> None:
        healed = time.monotonic()
        if not self.storm.wait_until(self.storm.is_restored, timeout_s=60):
            down = [n for n in self.storm.processes.children if not self.storm.processes.is_configured(n)]
            outcome.wrong.append(f"{', '.join(down)} did not come up within 60 s after the storm")
        if not self.storm.wait_until(self._routers_are_free, timeout_s=60):
            outcome.wrong.append("the NOC could not end its work on the routers within 60 s")
        if not self.storm.wait_until(self.storm.all_finished, timeout_s=90):
            outcome.wrong.append("a customer had no response within 90 s after the storm")
        left: list[str] = []

        def calm() -> bool:
            nonlocal left
            try:
                left = self.verdict.unsettled()
            except psycopg.OperationalError as error:
                left = [str(error)]
            return not left

        if not self.storm.wait_until(calm, timeout_s=REST_WITHIN_S - (time.monotonic() - healed)):
            outcome.wrong += [f"{REST_WITHIN_S} s after the storm {each}" for each in left]
            # The product has not settled in time. Wait longer, then check the state anyway.
            self.storm.wait_until(calm, timeout_s=LATE_WITHIN_S)
        outcome.open_after_s = time.monotonic() - healed
        self.timeline.note(
            f"at rest after {outcome.open_after_s:.1f} s: {'; '.join(self.verdict.ends_of_orders())}"
        )

    def _routers_are_free(self) -> bool:
        """End maintenance, maintenance locks and freezes of routers. Return whether there were none."""
        noc, ends = self.stack.client("noc"), 0
        try:
            for row in noc.routers():
                for since, do in (
                    ("maintenance_since", "maintenance-end"),
                    ("held_since", "release"),
                    ("frozen_since", "unfreeze"),
                    ("frozen_since", "freeze-looked"),
                ):
                    if row[since] is not None:
                        ends += 1
                        self._try(noc, row["id"], do)
        except (httpx.TransportError, Refused):
            return False
        return not ends

    def _try(self, noc: Client, router: int, do: str) -> None:
        try:
            noc.router_action(router, do)
        except Refused as refusal:
            self.timeline.note(f"{do} of router {router}: {refusal.status}")

    def _at_rest(self) -> Iterator[str]:
        customers = self.storm.customers
        promised = [promise.order for promise in customers.promises]
        yield from self.verdict.against_promises(promised, unanswered=len(customers.unanswered))
        yield from (f"{each} returned 500" for each in customers.server_errors)
        yield from self._eventually(self._against_vpps, within_s=15)

    def _against_vpps(self) -> list[str]:
        configs = {router: self.routers.past_the_agent(router).config() for router in ROUTERS}
        errors = list(self.verdict.against_vpp(configs))
        for router in ROUTERS:
            if (policers := self.routers.configuration(router).get("show policer")) is not None:
                errors += self.verdict.against_policers(router, policers)
        return errors

    def _eventually(self, check: Callable[[], list[str]], *, within_s: float) -> list[str]:
        """Return the problems that still exist after ``within_s``. Until then, agents may still be repairing
        foreign changes.
        """
        errors: list[str] = []

        def is_right() -> bool:
            nonlocal errors
            try:
                errors = check()
            except (CommandRefused, VppRefused, psycopg.OperationalError) as problem:
                errors = [str(problem)]
            return not errors

        self.storm.wait_until(is_right, timeout_s=within_s, every_s=2)
        return errors

    def _emptied(self, before: dict[str, Configuration]) -> list[str]:
        """Remove all lines. Return differences of each VPP to its state before the storm, and
        remaining leases.
        """
        noc = self.stack.client("noc")
        for vll in self.verdict.lines():
            try:
                noc.remove(vll)
            except Refused as refusal:
                return [f"line {vll} cannot be removed: {refusal}"]
        left: list[str] = []

        def empty() -> bool:
            nonlocal left
            left = [
                *self.verdict.open_orders(),
                *(f"line {vll} still exists" for vll in self.verdict.lines()),
            ]
            return not left

        if not self.storm.wait_until(empty, timeout_s=EMPTY_WITHIN_S):
            return [f"{EMPTY_WITHIN_S} s after all lines were removed {each}" for each in left]
        self._remove_released()
        self.routers.remove_handmade()
        return [
            *self._eventually(
                lambda: [
                    sentence
                    for router in ROUTERS
                    for sentence in difference(
                        before[router], self.routers.configuration(router), where=router
                    )
                ],
                within_s=20,
            ),
            *self.verdict.still_leased(),
        ]

    def _remove_released(self) -> None:
        """Remove the lines that the portal released, as their new owner would.

        One or both VPPs may have lost such a line. If a suspended line had a whole port, the port is still
        down; the owner sets it up again.
        """
        for end in self.verdict.released_ends():
            vpp = self.routers.past_the_agent(end.router)
            config = vpp.config()
            access, tunnel = end.access(config), end.tunnel(config)
            for each in (access, tunnel):
                if each is not None and each["index"] in config.connects:
                    vpp.disconnect(each["name"])
            if access is not None and end.tagging != "untagged":
                vpp.delete_sub(access["name"])
            elif access is not None and end.admin_status == "admin-down":
                vpp.up(access["name"])
            if tunnel is not None:
                vpp.delete_tunnel(tunnel["name"])


def run(plan: Plan) -> Outcome:
    """Run the storm of a plan and return the result. Raises CannotRun, ChildFailed,
    HaproxyMissing, NotReached.
    """
    home = RUN / "chaos" / f"seed-{plan.seed}"
    shutil.rmtree(home, ignore_errors=True)
    timeline = Timeline(home / "timeline.log")
    with _started(plan, timeline, home / "log") as chaos:
        return chaos.run()


@contextmanager
def _started(plan: Plan, timeline: Timeline, logs: Path) -> Iterator[Chaos]:
    family = Family()
    with ExitStack() as undo:
        # Use a short path: the path of a Unix socket has at most 107 bytes.
        folder = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="ll-chaos-")))
        folder.chmod(0o711)
        disk = folder / "disk"
        disks = Disks(
            {"disk-postgres": disk, **{f"disk-agent-{name}": disk / f"agent-{name}" for name in ROUTERS}}
        )
        undo.callback(disks.unmount)
        disks.mount()
        net = routers(family, folder=folder / "vpp", logs=logs, undo=undo)
        running = undo.enter_context(
            stack.running(
                folder=disk,
                logs=logs,
                isp=net.dataplane.isp,
                dataplane=net.dataplane,
                family=family,
                report_interval_s=REPORT_INTERVAL_S,
                durable=True,
                settings={**_SETTINGS, "LONGLINE_METRICS_DIR": str(folder / "metrics")},
                template=migrated_cluster(),
            )
        )
        net.lay(running)
        stack.wait_for_reports(running)
        _lay_cables(running, folder, family)
        threads = undo.enter_context(ThreadPoolExecutor(max_workers=32))
        # Use a separate pool, so that a VPP's configuration does not wait for customers who wait for
        # responses.
        aside = undo.enter_context(ThreadPoolExecutor(max_workers=len(ROUTERS)))
        names = [*_PORTAL, *(f"{kind}-{router}" for kind in ("agent", "cable") for router in ROUTERS)]
        children = {name: family[name] for name in names}
        children |= {f"dataplane-{router}": family[f"{net.prefix}-{router}"] for router in ROUTERS}
        children |= {
            "postgres": running.portal.services.postgres.child,
            "redis": running.portal.services.redis.child,
        }
        processes = Processes(
            children=children,
            timeline=timeline,
            revived={f"dataplane-{router}": net.revived(router) for router in ROUTERS},
            aside=aside.submit,
        )
        loaded = running.loaded
        customers = Customers(
            plan=plan,
            url=running.url,
            customer_token=loaded["customer_token"],
            noc_token=loaded["noc_token"],
            ports=loaded["ports"],
            handmade_interface=net.handmade_interface,
            timeline=timeline,
        )
        yield Chaos(
            plan=plan,
            timeline=timeline,
            stack=running,
            routers=net,
            storm=Storm(plan, customers, processes, disks, timeline, threads),
            verdict=Verdict(running.portal.services.database_url, running.url, loaded["noc_token"]),
        )


def _lay_cables(running: stack.Stack, folder: Path, family: Family) -> None:
    """Put a cable between the portal and each agent. From now on they communicate only through the cables."""
    noc = running.client("noc")
    free = free_ports(2 * len(running.agents))
    for agent, ports in zip(running.agents, zip(free[::2], free[1::2], strict=True), strict=True):
        cable = cables.lay(
            agent, portal_port=running.portal.agents_port, ports=ports, folder=folder, family=family
        )
        noc.change_router(noc.router(agent.router), agent_url=f"https://127.0.0.1:{cable.agent_side}")
        agent.report_over(f"https://127.0.0.1:{cable.portal_side}")
        child = family[f"agent-{agent.router}"]
        child.end()
        child.restart()
