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
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for folder in _OWN_FOLDERS:
        Path(folder).mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True)
