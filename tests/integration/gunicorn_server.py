"""A gunicorn of ours in front of a stub: what is tried is the server, not the portal behind it."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from devstack.tcp_ports import LOOPBACK, accepts, free_ports

NOTHING: Mapping[str, str] = MappingProxyType({})


@contextmanager
def server(folder: Path, config: str, app: str, environment: Mapping[str, str] = NOTHING) -> Iterator[int]:
    """The port at which gunicorn serves a WSGI function; ``config`` and ``app`` are sources."""
    (port,) = free_ports(1)
    (folder / "settings.py").write_text(config)
    (folder / "stub.py").write_text(app)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "gunicorn", "--config", "settings.py", "--bind", f"{LOOPBACK}:{port}"),
            # A worker that is being forked misses a signal to end, and gunicorn waits this long for it.
            *("--no-control-socket", "--graceful-timeout", "5", "--log-level", "critical", "stub:app"),
        ],
        env=os.environ | environment | {"PYTHONPATH": f"{Path(__file__).parents[2]}:{folder}"},
        cwd=folder,
    )
    try:
        deadline = time.monotonic() + 30
        while not accepts(port):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait(20)
