"""The execution of a plan. Many threads send the orders. The thread that starts processes causes
the faults.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from drills.chaos.customers import Customers
from drills.chaos.disks import Disks
from drills.chaos.plan import Fault, Plan
from drills.chaos.processes import Processes
from drills.chaos.timeline import Timeline

TURN_S = 0.05


@dataclass
class Storm:
    plan: Plan
    customers: Customers
    processes: Processes
    disks: Disks
    timeline: Timeline
    threads: ThreadPoolExecutor
    faults: int = 0
    _steps: list[Future[None]] = field(default_factory=list)
    _under_way: list[tuple[float, Fault]] = field(default_factory=list)

    def rage(self) -> None:
        """Run until all orders have been submitted to the threads and all faults have ended."""
        steps, faults = list(enumerate(self.plan.steps)), list(self.plan.faults)
        self.timeline.begin()
        while steps or faults or self._under_way:
            now = self.timeline.now_s
            while steps and steps[0][1].at_s <= now:
                number, step = steps.pop(0)
                self._steps.append(self.threads.submit(self.customers.take, number, step))
            while faults and faults[0].at_s <= now:
                self._begin(faults.pop(0))
            self._end_what_is_over(now)
            self.processes.tend()
            time.sleep(TURN_S)
        self.timeline.note("all is healed")

    def wait_until(self, condition: Callable[[], bool], *, timeout_s: float, every_s: float = 0.5) -> bool:
        """Wait for the condition, and meanwhile restart processes that die. Return whether it became true in
        time.
        """
        deadline, next_check = time.monotonic() + timeout_s, 0.0
        while time.monotonic() < deadline:
            self.processes.tend()
            if time.monotonic() >= next_check:
                if condition():
                    return True
                next_check = time.monotonic() + every_s
            time.sleep(TURN_S)
        return False

    def is_restored(self) -> bool:
        return all(self.processes.is_configured(name) for name in self.processes.children)

    def all_finished(self) -> bool:
        """Return whether all requests have ended. Raises the errors of the threads that sent them."""
        return all(each.done() and each.result() is None for each in self._steps)

    def _begin(self, fault: Fault) -> None:
        begin = {
            "kill": self.processes.kill,
            "freeze": self.processes.freeze,
            "cut": self.processes.freeze,
            "fill": self.disks.fill,
        }[fault.kind]
        if fault.kind != "fill" and not self.processes.is_configured(fault.target):
            self.timeline.note(f"fault {fault}: left out, it is not up yet")
            return
        self.timeline.note(f"fault {fault}")
        begin(fault.target)
        self.faults += 1
        self._under_way.append((self.timeline.now_s + fault.lasts_s, fault))

    def _end_what_is_over(self, now: float) -> None:
        for end, fault in list(self._under_way):
            if end > now:
                continue
            self._under_way.remove((end, fault))
            {
                "kill": self.processes.let_live,
                "freeze": self.processes.thaw,
                "cut": self.processes.thaw,
                "fill": self.disks.empty,
            }[fault.kind](fault.target)
            self.timeline.note(f"healed {fault.kind} {fault.target}")
