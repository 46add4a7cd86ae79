"""The processes of the product, and faults of processes. A process that dies is started again, as
systemd would.
"""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from devstack.process import Child, ChildFailed, descendants
from drills.chaos.timeline import Timeline

RESTART_AFTER_S = 1.0


@dataclass
class Processes:
    """Processes by the names that the plan uses.

    ``revived`` maps the name of a process to a function that restores its configuration after a restart. The
    function runs in a thread and may take some time. The same thread must start all children and must live as
    long as the children: the kernel ends a child when the thread that started it ends.
    """

    children: dict[str, Child]
    timeline: Timeline
    revived: dict[str, Callable[[], None]]
    aside: Callable[[Callable[[], None]], object]
    _kept_down: set[str] = field(default_factory=set)
    _frozen: set[str] = field(default_factory=set)
    _busy: set[str] = field(default_factory=set)
    _died_at: dict[str, float] = field(default_factory=dict)
    deaths: list[str] = field(default_factory=list)

    def kill(self, name: str) -> None:
        self._kept_down.add(name)
        child = self.children[name]
        _signal_all(child.process.pid, signal.SIGKILL)
        child.process.wait(child.grace_s)

    def let_live(self, name: str) -> None:
        self._kept_down.discard(name)
        if not self.is_alive(name):
            self._start(name)

    def freeze(self, name: str) -> None:
        self._frozen.add(name)
        _signal_all(self.children[name].process.pid, signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        self._frozen.discard(name)
        if self.is_alive(name):
            _signal_all(self.children[name].process.pid, signal.SIGCONT)

    def is_alive(self, name: str) -> bool:
        return self.children[name].process.poll() is None

    def is_configured(self, name: str) -> bool:
        """Return whether the process runs without a fault and has the configuration of its operator."""
        return self.is_alive(name) and not ({name} & (self._kept_down | self._frozen | self._busy))

    def tend(self) -> None:
        """Restart processes that ended although no fault was planned for them."""
        for name, child in self.children.items():
            if self.is_alive(name) or name in self._kept_down | self._busy:
                self._died_at.pop(name, None)
                continue
            died = self._died_at.setdefault(name, time.monotonic())
            if time.monotonic() - died >= RESTART_AFTER_S:
                del self._died_at[name]
                self.deaths.append(name)
                self.timeline.note(f"{name} ended with status {child.process.returncode}: started again")
                self._start(name)

    def _start(self, name: str) -> None:
        self.children[name].start()
        revive = self.revived.get(name)
        if revive is not None:
            self._busy.add(name)
            self.aside(lambda: self._revive(name, revive))

    def _revive(self, name: str, revive: Callable[[], None]) -> None:
        try:
            revive()
            self.timeline.note(f"{name} is as it was configured")
        except Exception as problem:
            # The process may have been killed again in the meantime. `tend` then finds it dead and starts it.
            self.timeline.note(f"{name} could not be configured ({str(problem).splitlines()[0]}): killed")
            try:
                _signal_all(self.children[name].process.pid, signal.SIGKILL)
                self.children[name].process.wait(10)
            except (ProcessLookupError, ChildFailed):
                pass
        finally:
            self._busy.discard(name)


def _signal_all(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process and to all its descendants. PostgreSQL's processes have their
    own sessions.
    """
    for each in [pid, *descendants(pid)]:
        try:
            os.kill(each, number)
        except ProcessLookupError:
            pass
