"""Programs in private namespaces: what they create there ends with them, even after a crash."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_INSIDE = "LONGLINE_IN_OWN_NAMESPACES"
# Folders of the names of `ip netns` and of VPP's segments. Both contain process ids, which restart at 1.
_OWN_FOLDERS = ("/run/netns", "/dev/shm")  # noqa: S108


def enter(module: str, arguments: Sequence[str], *kinds: str) -> None:
    """Continue in new namespaces of these kinds (``net``), of processes and of mounts; needs root.

    The kernel kills all processes in the namespaces with the first one, also frozen ones. SIGTERM ends it in
    order. A program that a process in the namespaces starts does not enter new ones.
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
    """Return in a child; the first process waits for all orphans, which otherwise stay as zombies.

    Patroni would mistake a PostgreSQL that was killed with it for a running one.
    """
    program = os.fork()
    if program == 0:
        return
    signal.signal(signal.SIGTERM, lambda *_: os.kill(program, signal.SIGTERM))
    # A terminal sends the signal to the program too.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        ended, status = os.wait()
        if ended == program:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)
