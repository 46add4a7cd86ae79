"""Virtual machines on this machine. Each has a separate network, hostname and files. One switch connects all
of them.
"""

import os
import pwd
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from devstack.folders import ROOT
from devstack.process import Child, Family
from devstack.routers import netns

# The network namespace of this program, of the agents and of the load. It is the outside world.
WORLD = "world"
_BRIDGE = "switch"
_MTU = 1500
_CARD = "eth0"
# These folders are separate for each machine. All other folders are the folders of the real machine.
_OWN = ("etc", "run", "var/lib", "var/log")
_GONE_WITHIN_S = 10


@dataclass
class Machine:
    """A machine. The folder `root` contains its /etc, /run, /var/lib and /var/log."""

    name: str
    address: str
    root: Path
    logs: Path
    namespace: str
    family: Family
    children: dict[str, Child] = field(default_factory=dict)
    # The pid of the process that keeps the machine's mounts.
    keeper: int = 0
    # The folder with the portal's code for this machine.
    code: Path = ROOT

    def boot(self, *, database_disk_mib: int | None = None) -> None:
        """Mount the machine's files at the paths where programs expect them.

        With `database_disk_mib`, PostgreSQL gets a separate disk of this size.
        """
        script = [f"mount --bind {self.root / own} /{own}" for own in _OWN]
        script = [f"mkdir -p {self.root}/opt/longline", *self._opt(), *script]
        if database_disk_mib is not None:
            image = self.root / "database.img"
            script += [
                f"truncate -s {database_disk_mib}M {image}",
                f"mkfs.ext4 -q -F -m 0 {image}",
                f"mount -o loop {image} /var/lib/postgresql",
                "chown postgres:postgres /var/lib/postgresql",
            ]
        text = " && ".join([*script, f"hostname {self.name}", "touch /run/booted", "exec sleep infinity"])
        booted = self.root / "run" / "booted"
        booted.unlink(missing_ok=True)
        keeper = Child(
            name=f"{self.name}-files-{self.code.name}",
            argv=[
                *("nsenter", f"--net=/run/netns/{self.namespace}"),
                *("unshare", "--mount", "--uts", "--ipc", "sh", "-euc", text),
            ],
            log=self.logs / f"{self.name}.log",
        )
        self.family.start(keeper).wait_until(booted.exists)
        self.keeper = keeper.process.pid

    def install(self, code: Path) -> None:
        """Install another release of the portal. Programs that start from now on use it."""
        self.code = code
        self.boot()

    def child(
        self,
        name: str,
        argv: Sequence[str],
        *,
        user: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str = "/",
        grace_s: float = 20,
    ) -> Child:
        """Return a program on this machine without starting it. The program replaces an earlier program with
        the same name.
        """
        inside = ["nsenter", f"--target={self.keeper}", "--net", "--mount", "--uts", "--ipc"]
        if user is not None:
            account = [f"--reuid={user}", f"--regid={user}", "--init-groups"]
            argv = ["setpriv", *account, "--pdeathsig", "TERM", *argv]
        basics = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/tmp"}  # noqa: S108
        self.children[name] = Child(
            name=f"{self.name}-{name}",
            argv=[*inside, f"--wdns={cwd}", *argv],
            log=self.logs / f"{self.name}-{name}.log",
            env={**basics, **(env or {})},
            grace_s=grace_s,
        )
        return self.children[name]

    def start(self, child: Child) -> Child:
        """Start a program. It may have run before."""
        return self.family.start(child)

    def run(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str = "/") -> str:
        """Run a program to its end and return its output. Raises CalledProcessError; the reason is in the
        program's log.
        """
        done = self.child("command", argv, env=env, cwd=cwd)
        with done.log.open("ab") as log:
            return subprocess.run(
                done.argv, env=done.env, check=True, stdout=subprocess.PIPE, stderr=log, text=True
            ).stdout

    def pids(self) -> list[int]:
        """Return the pids of all processes on the machine, except the process that keeps its mounts."""
        own = os.stat(f"/run/netns/{self.namespace}").st_ino
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if (entry / "ns" / "net").stat().st_ino == own and int(entry.name) != self.keeper:
                    found.append(int(entry.name))
            except OSError:
                continue  # the process ended in the meantime
        return found

    def kill_account(self, user: str) -> None:
        """Send SIGKILL to all processes on this machine that belong to the account `user`, until
        none is left.
        """
        account = pwd.getpwnam(user).pw_uid
        self._kill(lambda: [pid for pid in self.pids() if _account_of(pid) == account])

    def kill_all(self) -> None:
        """Send SIGKILL to all processes on this machine, until none is left."""
        self._kill(self.pids)

    def _kill(self, victims: Callable[[], list[int]]) -> None:
        deadline = time.monotonic() + _GONE_WITHIN_S
        while pids := victims():
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name}: {pids} did not end")
            time.sleep(0.02)

    def lose_power(self) -> None:
        """Unplug the cable, then kill all processes. No connection is closed properly."""
        self.cut_off()
        self.kill_all()

    def cut_off(self) -> None:
        """Unplug the machine's cable at the switch. Its processes continue."""
        _set_link(self.name, "down")

    def join(self) -> None:
        """Plug in the machine's cable again."""
        _set_link(self.name, "up")

    def _opt(self) -> list[str]:
        """Return the mount commands for /opt: the portal at its usual path, and this machine's
        other folders.
        """
        opt = self.root / "opt"
        others = [entry for entry in Path("/opt").iterdir() if entry.is_dir() and entry.name != "longline"]
        keep = [
            f"mkdir -p {opt / entry.name} && mount --rbind {entry} {opt / entry.name}" for entry in others
        ]
        return [*keep, *self._portal(opt), f"mount --rbind {opt} /opt"]

    def _portal(self, opt: Path) -> list[str]:
        """Return the mount commands for the portal. An earlier portal also uses this release's libraries."""
        code = [f"mount --bind {self.code} {opt}/longline"]
        if self.code != ROOT:
            (self.code / ".venv").mkdir(exist_ok=True)
            code.append(f"mount --bind {ROOT / '.venv'} {opt}/longline/.venv")
        return code


@contextmanager
def switched(
    addresses: Mapping[str, str], *, world: str, folder: Path, logs: Path, family: Family
) -> Iterator[dict[str, Machine]]:
    """Create machines by name, without booting them. Each has a copy of this machine's /etc.

    This program gets the address `world`. At the end, all processes on the machines are killed.
    """
    subprocess.run(["ip", "netns", "attach", WORLD, str(os.getpid())], check=True)
    netns.bridge(WORLD, _BRIDGE, [])
    netns.add_address(WORLD, _BRIDGE, f"{world}/24")
    machines: dict[str, Machine] = {}
    with netns.namespaces(addresses) as namespaces:
        try:
            for name, address in addresses.items():
                namespace = namespaces[name]
                netns.veth((namespace, _CARD), (WORLD, name), mtu=_MTU)
                netns.join_bridge(WORLD, _BRIDGE, name)
                netns.add_address(namespace, _CARD, f"{address}/24")
                root = folder / name
                for own in _OWN:
                    (root / own).mkdir(parents=True, exist_ok=True)
                subprocess.run(["cp", "--archive", "/etc/.", str(root / "etc")], check=True)
                machines[name] = Machine(name, address, root, logs, namespace, family)
            yield machines
        finally:
            # Stop these programs before the processes that keep the mounts. Otherwise a program could write
            # into the folders of the real machine.
            family.stop()
            for machine in machines.values():
                machine.kill_all()


def _account_of(pid: int) -> int | None:
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return None


def _set_link(name: str, state: str) -> None:
    subprocess.run(["ip", "link", "set", name, state], check=True)
