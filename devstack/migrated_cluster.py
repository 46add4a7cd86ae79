"""A PostgreSQL cluster in which all migrations have run: what tests start begins with a copy of it.

Who comes first makes it. It serves all lanes of a run, and later runs until a file of the portal changes.
It is made as a first installation is, by `manage.py upgrade`; later upgrades are tested in databases of their
own (tests/integration/test_upgrade.py).
"""

import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

from devstack import postgres
from devstack.folders import ROOT, RUN
from devstack.process import run
from devstack.tcp_ports import free_ports

_HOME = RUN / "migrated"
_SETTINGS = {
    "DJANGO_SETTINGS_MODULE": "portal.settings",
    "SECRET_KEY": "for-tests-only",
    "TOKEN_PEPPER": "for-tests-only",
    "BASE_URL": "http://testserver",
    "REDIS_URL": "redis://127.0.0.1:1/0",
}


def migrated_cluster() -> Path:
    """Where it is. Raises PostgresMissing or ChildFailed."""
    _HOME.mkdir(parents=True, exist_ok=True)
    wanted = _HOME / _fingerprint()
    with (_HOME / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not wanted.exists():
            for older in _HOME.glob("*/"):
                shutil.rmtree(older)
            _make(wanted)
    return wanted


def _fingerprint() -> str:
    """Of all that a migration may read: other code gives other tables, triggers or rows."""
    files = [
        ROOT / "requirements.txt",
        *(p for p in (ROOT / "portal").rglob("*") if p.suffix in (".py", ".sql")),
    ]
    digest = hashlib.sha256(str(postgres.server_binaries()).encode())
    for file in sorted(files):
        digest.update(f"{file}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _make(wanted: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="ll-migrated-") as name:
        folder, logs = Path(name), RUN / "log"
        # The database's own account has to get through to its cluster.
        folder.chmod(0o711)
        cluster, [port] = folder / "postgres", free_ports(1)
        with postgres.running(
            folder=cluster, log=logs / "migrated-postgres.log", port=port, durable=False, kept=True
        ) as server:
            run(
                [sys.executable, "manage.py", "upgrade"],
                log=logs / "migrated.log",
                env=os.environ | _SETTINGS | {"DATABASE_URL": server.url},
                cwd=ROOT,
            )
        unfinished = wanted.with_suffix(".unfinished")
        unfinished.mkdir()
        postgres.copy_cluster(cluster, unfinished)
        unfinished.rename(wanted)
