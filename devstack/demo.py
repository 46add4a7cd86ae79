"""`make demo`: a small ISP with one line in service. It runs in the foreground until Ctrl-C."""

import fcntl
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from devstack import stack
from devstack.client import NotReached, Refused
from devstack.databases.postgres import PostgresMissing
from devstack.databases.redis import RedisMissing
from devstack.demo_line import facts_write, first_line, logins
from devstack.folders import ROOT, RUN, VENV_BIN
from devstack.isp import Isp, small_isp
from devstack.process import Child, ChildFailed, Family, accepts
from devstack.routers import netns, vpp
from devstack.routers.vpp_network import VppDataplane
from devstack.routers.vppsim import SimulatedDataplane

FOLDER = RUN / "demo"
LOGS = RUN / "log"
FACTS = RUN / "demo.json"
TRAFFIC_BPS = 5_000_000
# Seconds. The demo reports more often than an agent's default (10 s), because a person waits for the graph.
REPORT_INTERVAL_S = 2
# The provider's name and contact in the demo.
PROVIDER = {
    "LONGLINE_PROVIDER_NAME": "Savanna Networks",
    "LONGLINE_PROVIDER_LOGO": str(ROOT / "devstack" / "savanna.svg"),
    "LONGLINE_PROVIDER_COLOUR": "#0f5f5c",
    "LONGLINE_PROVIDER_SUPPORT_EMAIL": "noc@savanna.example",
    "LONGLINE_PROVIDER_SUPPORT_PHONE": "+254 20 555 0100",
    "LONGLINE_PROVIDER_HELP_URL": "https://help.savanna.example/lines",
    "LONGLINE_PROVIDER_TERMS_URL": "https://www.savanna.example/terms",
}
WATCH_S = 0.5


class Stopped(Exception):
    """A signal has stopped the demo."""


class CannotStart(Exception):
    """The demo cannot start. The text is the reason, in one sentence."""


def main() -> int:
    _on_signals(_stop)
    try:
        with _only_one(), ExitStack() as undo:
            undo.callback(FACTS.unlink, missing_ok=True)
            try:
                _run(undo)
            finally:
                # From here on, a second Ctrl-C cannot interrupt the cleanup.
                _on_signals(signal.SIG_IGN)
    except Stopped:
        _print("stopped")
        return 0
    except (CannotStart, ChildFailed, NotReached, PostgresMissing, RedisMissing, Refused) as problem:
        print(f"demo: {problem}", file=sys.stderr, flush=True)
        return 1
    return 0


def _run(undo: ExitStack) -> None:
    FACTS.unlink(missing_ok=True)
    for stale in (FOLDER, LOGS):
        shutil.rmtree(stale, ignore_errors=True)
    port = _port()
    isp, family = small_isp(), Family()
    # The path of a Unix socket has at most 107 bytes, and the path of the clone may be longer.
    sockets = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="ll-demo-")))
    dataplane = _dataplane(isp, family, sockets, undo)
    _print(f"starting PostgreSQL, Redis, the portal and two agents; logs are in {LOGS}")
    running = undo.enter_context(
        stack.running(
            folder=FOLDER,
            logs=LOGS,
            isp=isp,
            dataplane=dataplane,
            family=family,
            web_port=port,
            report_interval_s=REPORT_INTERVAL_S,
            live=True,
            settings=PROVIDER,
        )
    )
    stack.wait_for_reports(running)
    customer = running.client("customer")
    _print("ordering a VLL from Rhino to Hippo")
    identity = first_line(customer, running.loaded["ports"], timeout_s=30)
    if (lifecycle := customer.vll(identity)["lifecycle"]) != "active":
        raise NotReached(f"the order is complete, but VLL {identity} is {lifecycle}")
    if isinstance(dataplane, VppDataplane):
        _send_traffic(dataplane, family)
    _print("the VLL is active; waiting for its traffic to be counted")
    if not customer.wait(lambda: customer.carries_traffic(identity), timeout_s=60):
        raise NotReached(f"no traffic was counted on {identity} within 60 s; read {LOGS}/agent-*.log")
    running.portal.start_metrics(family)
    names = ("customer_token", "noc_token", "customer_login", "noc_login")
    facts = {"url": running.url, "vll": identity, "dataplane": running.dataplane.name}
    facts_write(FACTS, facts | {name: running.loaded[name] for name in names})
    _print("\n".join(logins(running.loaded)))
    _print(f"Prometheus can scrape {running.portal.metrics_url}/metrics")
    _print(f"demo ready {running.url}")
    while True:
        family.raise_if_dead()
        time.sleep(WATCH_S)


def _dataplane(
    isp: Isp, family: Family, folder: Path, undo: ExitStack
) -> "VppDataplane | SimulatedDataplane":
    try:
        installation = vpp.find()
    except vpp.NotInstalled as reason:
        _print(f"{reason}: using the stand-in with synthetic counters")
        return SimulatedDataplane(isp=isp, folder=folder, logs=LOGS, family=family)
    unusable = netns.why_unusable()
    if unusable is not None:
        raise CannotStart(f"VPP is installed in {installation.prefix}, but {unusable}")
    netns.remove_leftovers()
    return undo.enter_context(
        VppDataplane(installation=installation, isp=isp, folder=folder, logs=LOGS, family=family)
    )


def _send_traffic(dataplane: VppDataplane, family: Family) -> None:
    for router in ("rhino", "hippo"):
        namespace = dataplane.customers[router, "host-cust1"]
        python = str(VENV_BIN / "python")
        argv = [python, "-m", "devstack.traffic", namespace, "--vlan", "100", "--rate-bps", str(TRAFFIC_BPS)]
        name = f"customer-{router}"
        family.start(Child(name=name, argv=argv, log=LOGS / f"{name}.log", cwd=ROOT))


def _port() -> int | None:
    port = os.environ.get("PORT")
    if not port:
        return None
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise CannotStart(f"PORT={port} is not a TCP port")
    if accepts(int(port)):
        raise CannotStart(f"port {port} is in use")
    return int(port)


@contextmanager
def _only_one() -> Iterator[None]:
    """Lock the clone for this demo. Two demos in one clone would overwrite each other's files."""
    RUN.mkdir(exist_ok=True)
    with Path(RUN / "demo.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotStart("another demo is running in this clone") from None
        yield


def _print(line: str) -> None:
    print(line, flush=True)


def _stop(number: int, frame: FrameType | None) -> None:
    raise Stopped


def _on_signals(handler: Any) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handler)


if __name__ == "__main__":
    sys.exit(main())
