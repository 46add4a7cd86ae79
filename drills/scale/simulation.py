"""The course of the simulation.

The network starts and settles, the loads start one after another, and then the network is measured under all
loads.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg

from devstack.large_network import KINDS
from drills.scale.installation import Installation
from drills.scale.lag import Lags
from drills.scale.orders import Orders
from drills.scale.pages import Page, Requests
from drills.scale.readers import Readers
from drills.scale.samples import QUEUES, Samples, Work
from drills.scale.size import Size

SAMPLE_EVERY_S = 5.0
# The drill numbers the changes of the lines that pages show. It polls the API only after changes whose number
# is divisible by this value.
_API_EACH = 3


@dataclass
class Reports:
    """The reports so far.

    ``took``: for each kind of report, pairs of (``time.monotonic``, duration in seconds), one per stored
    report. ``refused``: the HTTP statuses of reports that were not stored.
    """

    took: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    refused: Counter[str] = field(default_factory=Counter)
    own_cpu_s: float = 0.0


@dataclass
class Phase:
    """A phase: the work done until its beginning and until its end, and the requests of each kind."""

    name: str
    began: Work
    ended: Work
    counts: dict[str, int]

    @property
    def seconds(self) -> float:
        return self.ended.at - self.began.at


@dataclass
class Simulation:
    """All measurements. ``measured_from`` is the beginning of the phase with all loads."""

    size: Size
    installation: Installation
    samples: Samples
    reports: Reports = field(default_factory=Reports)
    lags: Lags = field(default_factory=Lags)
    requests: Requests = field(default_factory=Requests)
    orders: Orders = field(init=False)
    readers: Readers = field(init=False)
    phases: list[Phase] = field(default_factory=list)
    introduced_s: float = 0.0
    settled_s: float = 0.0
    measured_from: float = 0.0
    _followed: set[str] = field(default_factory=set)
    _turns: int = 0
    _background: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        installation = self.installation
        port, people = installation.portal.web_port, installation.people
        self.orders = Orders(port, people.customer_token, self.size.routers)
        lines = [vll for ends in installation.ends.values() for vll, _ in ends[:1]]
        self.readers = Readers(port, people.noc_token, lines)

    async def run(self, note: Callable[[str], None]) -> None:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(self._take_samples())]
            running.append(await self._bring_up(tasks, note))
            await self._phase("reports", note, self.size.phase_s)
            running.append(tasks.create_task(self.orders.keep_ordering(self.size.orders_per_s)))
            await self._phase("reports, orders", note, self.size.phase_s)
            running += [tasks.create_task(page.stay_open()) for page in self._pages()]
            await asyncio.sleep(15)
            await self._phase("reports, orders, pages", note, self.size.phase_s)
            running.append(tasks.create_task(self.readers.keep_reading()))
            await asyncio.sleep(self.size.warm_s)
            self._forget()
            self.measured_from = time.monotonic()
            await self._phase("all", note, self.size.minutes * 60)
            for task in running:
                task.cancel()

    async def _bring_up(self, tasks: asyncio.TaskGroup, note: Callable[[str], None]) -> asyncio.Task[None]:
        began = time.monotonic()
        agents = await self.installation.start_agents(self.size.news)
        documents = agents.documents()
        self.installation.urls_write((await anext(documents))["urls"])
        self.installation.start_doors()
        self.installation.start_workers()
        self.samples.pids = self.installation.processes()
        await agents.begin(self.installation.portal.agents_port)
        self.introduced_s = (await anext(documents))["introduced_s"]
        note(f"all routers have sent their first, complete report in {self.introduced_s:.0f} s")
        listening = tasks.create_task(self._listen(documents))
        while self._unsettled():
            if time.monotonic() - began > self.size.settle_s:
                note(f"not settled within {self.size.settle_s:.0f} s: {self._unsettled()}")
                break
            await asyncio.sleep(2)
        self.settled_s = time.monotonic() - began
        note(f"settled after {self.settled_s:.0f} s")
        return listening

    def _unsettled(self) -> list[str]:
        """Return the queues that contained more than a few messages in each of the last samples."""
        if not self.samples.series:
            return ["nothing was looked at yet"]
        waiting = [f"messages in {queue}" for queue in QUEUES]
        found = {name: [value for _, value in self.samples.series[name][-3:]] for name in waiting}
        return [f"{name}: {values}" for name, values in found.items() if len(values) < 3 or min(values) > 20]

    async def _phase(self, name: str, note: Callable[[str], None], seconds: float) -> None:
        before, began = self._counts(), self.samples.work()
        try:
            await asyncio.sleep(seconds)
        finally:
            # Record an interrupted phase too.
            ended = self.samples.work()
            counts = {what: count - before[what] for what, count in self._counts().items()}
            self.phases.append(Phase(name, began, ended, counts))
            note(f"{name}: {counts}")

    def _counts(self) -> dict[str, int]:
        return {
            "reports": min(len(took) for took in self.reports.took.values()),
            "orders": len(self.orders.took),
            "looks": sum(map(len, self.requests.took.values())),
            "readings": sum(map(len, self.readers.took.values())),
        }

    def _forget(self) -> None:
        """Discard the measurements from the time before all loads ran."""
        for values in [
            *self.requests.took.values(),
            *self.lags.observed.values(),
            *self.readers.took.values(),
        ]:
            values.clear()
        self.lags.never = 0
        self.samples.series.clear()

    async def _take_samples(self) -> None:
        while True:
            if self.samples.pids:
                await asyncio.to_thread(self.samples.take)
            await asyncio.sleep(SAMPLE_EVERY_S)

    async def _listen(self, documents: Any) -> None:
        async for document in documents:
            if "took" in document:
                at = time.monotonic()
                for kind, took in document["took"].items():
                    self.reports.took[kind] += [(at, each) for each in took]
                self.reports.refused.update(document["refused"])
                self.reports.own_cpu_s = document["cpu_s"]
            elif document["turned"] in self._followed:
                self._turned(document)

    def _turned(self, document: dict[str, Any]) -> None:
        line = document["turned"]
        self.lags.turned(line, up=document["up"], at=document["at"])
        self._turns += 1
        if self._turns % _API_EACH == 0:
            portal, people = self.installation.portal, self.installation.people
            task = asyncio.create_task(
                self.lags.watch_api(line, port=portal.web_port, token=people.noc_token)
            )
            self._background.add(task)
            task.add_done_callback(self._background.discard)

    def _pages(self) -> list[Page]:
        """Return the open pages.

        Of ten pages, seven show a line, one shows the lines of a customer, and two show the NOC's pages.
        """
        portal, people = self.installation.portal, self.installation.people
        with psycopg.connect(self.installation.services.database_url) as database:
            customer_of: dict[str, int] = dict(
                database.execute("SELECT id::text, customer_id FROM vll_vll").fetchall()
            )
        lines = iter(self.installation.turning.values())
        pages = []
        for number in range(self.size.pages):
            path, line, cookie = "/", "", people.cookies[1 + number % (len(people.cookies) - 1)]
            if number % 10 < 7 and (found := next(lines, None)):
                path, line, cookie = f"/vlls/{found}/", found, people.cookies[customer_of[found]]
            elif number % 10 >= 8:
                path, cookie = ("/noc/", "/noc/wall/")[number % 2], people.cookies[0]
            pages.append(
                Page(path, cookie, portal.web_port, portal.live_port or 0, self.requests, self.lags, line)
            )
            if line:
                self._followed.add(line)
        return pages
