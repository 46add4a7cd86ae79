"""A gunicorn server in front of a stub: the tests exercise the server and not the portal."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from devstack.process import LOOPBACK, accepts, free_ports

NOTHING: Mapping[str, str] = MappingProxyType({})


@contextmanager
def server(folder: Path, config: str, app: str, environment: Mapping[str, str] = NOTHING) -> Iterator[int]:
    """Yield the port of a gunicorn that serves a WSGI function; ``config`` and ``app`` are source texts."""
    (port,) = free_ports(1)
    (folder / "settings.py").write_text(config)
    (folder / "stub.py").write_text(app)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "gunicorn", "--config", "settings.py", "--bind", f"{LOOPBACK}:{port}"),
            # A worker misses a signal during its fork, and gunicorn waits this long for that worker.
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
