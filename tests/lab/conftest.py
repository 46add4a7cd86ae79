"""The lab: two real VPPs, two agents, the whole portal, and customers that send frames.

It needs root and an installed VPP. Without them the tests are skipped, and the summary gives the reason.
"""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from devstack import stack
from devstack.databases.postgres import migrated_cluster
from devstack.folders import RUN
from devstack.isp import ALPINE_DAIRY, Port, small_isp
from devstack.process import Family
from devstack.routers import netns, vpp
from devstack.routers.vpp import Vpp
from devstack.routers.vpp_network import UNI, VppDataplane
from devstack.traffic import Wire
from tests.lab.abilities import Ability, missing
from tests.lab.customers import Customer, connect_memif
from tests.stacks import AS_TESTED, REPORT_INTERVAL_S

MEMIF_PORTS = ("memif1/0", "memif2/0")
TUNNELS = ("show vxlan tunnel", "show geneve tunnel", "show gre tunnel")
_report = pytest.StashKey[list[str]]()
_skipped = pytest.StashKey[str]()


def traces(vpp: Vpp) -> dict[str, object]:
    """Return interfaces, their modes (l3, l2 xconnect ...) and every kind of tunnel."""
    # The names begin in the first column of `show interface`.
    lines = vpp.show("show interface").splitlines()[1:]
    names = sorted(line.split()[0] for line in lines if line and not line[0].isspace())
    modes = [line.strip() for line in vpp.show("show mode").splitlines()]
    return {
        "interfaces": names,
        "modes": sorted(mode for mode in modes if any(f" {name} " in f" {mode} " for name in names)),
        "tunnels": [vpp.show(command).strip() for command in TUNNELS],
    }


@dataclass(frozen=True, slots=True)
class Lab:
    stack: stack.Stack
    dataplane: VppDataplane
    # Keyed by router and port interface.
    customers: dict[tuple[str, str], Customer]
    report: list[str]

    def can(self, ability: Ability) -> bool:
        return not self._missing(ability)

    def _missing(self, ability: Ability) -> list[str]:
        return sorted({each for vpp in self.dataplane.vpps.values() for each in missing(vpp, ability)})

    def needs(self, ability: Ability) -> None:
        """Skip the test on a release of VPP that lacks the ability, and name it in the summary."""
        if lacks := self._missing(ability):
            reason = f"NOT SHOWN on {self.dataplane.name}: it lacks {', '.join(lacks)}"
            if f"lab: {reason}" not in self.report:
                self.report.append(f"lab: {reason}")
            pytest.skip(reason)

    def ends(self, transport: str, tagging: str) -> dict[str, tuple[str, str]]:
        """Return (router, interface) of side a and of side z for this combination."""
        first, second = MEMIF_PORTS if tagging == "dot1ad" else ("host-cust1", "host-cust2")
        if transport == "l2xc":
            return {"a": ("rhino", first), "z": ("rhino", second)}
        return {"a": ("rhino", first), "z": ("hippo", first)}

    def wire(self, router: str, interface: str) -> Wire:
        """Return the raw socket of the customer on a port; memif ports have none."""
        customer = self.customers[router, interface]
        assert isinstance(customer, Wire)
        return customer

    def traces(self) -> dict[str, dict[str, object]]:
        return {name: traces(each) for name, each in self.dataplane.vpps.items()}


def why_not() -> str | None:
    try:
        vpp.find()
    except vpp.NotInstalled as reason:
        return str(reason)
    return netns.why_unusable()


@pytest.fixture(scope="package")
def lab(pytestconfig: pytest.Config) -> Iterator[Lab]:
    with running_lab(pytestconfig, settings=AS_TESTED) as lab:
        yield lab


@contextmanager
def running_lab(pytestconfig: pytest.Config, *, settings: dict[str, str]) -> Iterator[Lab]:
    """Yield a running lab, or skip where there is no VPP. Only one lab runs at a time."""
    reason = why_not()
    if reason is not None:
        pytestconfig.stash[_skipped] = reason
        pytest.skip(reason)
    netns.remove_leftovers()
    logs = RUN / "log" / "lab"
    isp = small_isp(extra_ports=tuple(Port(interface=name, customer=ALPINE_DAIRY) for name in MEMIF_PORTS))
    family = Family()
    with ExitStack() as undo:
        folder = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="ll-lab-")))
        dataplane = undo.enter_context(
            VppDataplane(installation=vpp.find(), isp=isp, folder=folder, logs=logs, family=family)
        )
        installed = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="lab-", dir=RUN)))
        # The database account needs to reach the cluster's folder.
        installed.chmod(0o711)
        running = undo.enter_context(
            stack.running(
                folder=installed,
                logs=logs,
                isp=isp,
                dataplane=dataplane,
                family=family,
                report_interval_s=REPORT_INTERVAL_S,
                durable=False,
                settings=settings,
                template=migrated_cluster(),
            )
        )
        generators = undo.enter_context(netns.namespace("generators"))
        customers = _linux_customers(dataplane, undo) | _memif_customers(
            dataplane, family, generators, folder
        )
        for each in dataplane.vpps.values():
            each.walk_slowly()
        stack.wait_for_reports(running)
        yield Lab(running, dataplane, customers, pytestconfig.stash.setdefault(_report, []))


def _linux_customers(dataplane: VppDataplane, undo: ExitStack) -> dict[tuple[str, str], Customer]:
    return {
        where: undo.enter_context(Wire(namespace, UNI)) for where, namespace in dataplane.customers.items()
    }


def _memif_customers(
    dataplane: VppDataplane, family: Family, namespace: str, folder: Path
) -> dict[tuple[str, str], Customer]:
    customer = vpp.Vpp(
        installation=dataplane.installation,
        label="customer",
        folder=folder / "customer",
        logs=dataplane.logs,
        namespace=namespace,
    )
    customer.start(family)
    customer.walk_slowly()
    places = [(router, n) for router in dataplane.vpps for n in range(1, len(MEMIF_PORTS) + 1)]
    return {
        (router, f"memif{socket_id}/0"): connect_memif(
            router=dataplane.vpps[router],
            customer=customer,
            socket_id=socket_id,
            generator=generator,
            folder=folder,
        )
        for generator, (router, socket_id) in enumerate(places, start=1)
    }


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if _skipped in config.stash:
        terminalreporter.section("lab on real VPPs: NOT RUN")
        terminalreporter.line(config.stash[_skipped])
    elif _report in config.stash:
        terminalreporter.section("lab on real VPPs")
        for line in config.stash[_report]:
            terminalreporter.line(line)
