"""Programs in namespaces of their own: what they make there ends with them, whatever becomes of them."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_INSIDE = "LONGLINE_IN_OWN_NAMESPACES"
# Where `ip netns` has its names and VPP its segments; both are named by process ids, which begin anew.
_OWN_FOLDERS = ("/run/netns", "/dev/shm")  # noqa: S108


def enter(module: str, arguments: Sequence[str], *kinds: str) -> None:
    """Go on in namespaces of these kinds (``net``), of processes and of mounts; needs root.

    All processes in them are killed with the first one, frozen ones too. SIGTERM ends it in order. A program
    that is started by one that has entered stays where it is.
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
    """Return in a child. The first process waits for all whose parents died: unwaited for, they look alive.

    Patroni would hold a PostgreSQL that was killed together with it for one that runs.
    """
    program = os.fork()
    if program == 0:
        return
    signal.signal(signal.SIGTERM, lambda *_: os.kill(program, signal.SIGTERM))
    # A terminal sends it to the program too.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        ended, status = os.wait()
        if ended == program:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)
