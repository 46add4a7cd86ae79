"""Run programs in private namespaces. Everything that the programs create in a namespace ends with the
namespace, even after a crash.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_INSIDE = "LONGLINE_IN_OWN_NAMESPACES"
# The folders with the names of `ip netns` and with VPP's segments. The names contain process ids, which begin
# at 1 in each new namespace.
_OWN_FOLDERS = ("/run/netns", "/dev/shm")  # noqa: S108


def enter(module: str, arguments: Sequence[str], *kinds: str) -> None:
    """Continue the program in new namespaces for processes, mounts and ``kinds`` (such as ``net``).

    Needs root. When the first process in the namespaces ends, the kernel kills all other processes there,
    even frozen ones. SIGTERM ends the program with a cleanup. A program that is started inside the
    namespaces stays in them, even if it calls this function.
    """
    if os.environ.get(_INSIDE) is None:
        unshare = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
        inside = [*unshare, *(f"--{kind}" for kind in kinds), sys.executable, "-m", module, *arguments]
        os.execvpe(inside[0], inside, os.environ | {_INSIDE: "1"})  # noqa: S606
    if os.getpid() == 1:
        _take_in_orphans()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for folder in _OWN_FOLDERS:
        Path(folder).mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True)


def _take_in_orphans() -> None:
    """Fork, and return in the child. The parent waits for all orphaned processes, which would otherwise
    remain as zombies.

    For example, if a PostgreSQL was killed together with its Patroni, a new Patroni would mistake the zombie
    for a running server.
    """
    program = os.fork()
    if program == 0:
        return
    signal.signal(signal.SIGTERM, lambda *_: os.kill(program, signal.SIGTERM))
    # On Ctrl-C, the terminal sends SIGINT to the child too.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        ended, status = os.wait()
        if ended == program:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)
