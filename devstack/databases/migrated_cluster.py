"""A PostgreSQL cluster in which all migrations have run. The database servers of tests start with a copy of
it.

The first process that needs the cluster creates it with `manage.py upgrade`, as a first installation does.
All lanes of a test run share the cluster. Later runs use it too, until a file of the portal changes. Tests of
upgrades from an earlier release use separate databases (tests/integration/database/test_upgrade.py).
"""

import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

from devstack.databases import postgres
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
    """Return the folder of the cluster; create the cluster if necessary. Raises PostgresMissing
    or ChildFailed.
    """
    _HOME.mkdir(parents=True, exist_ok=True)
    cluster = _HOME / _fingerprint()
    with (_HOME / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not cluster.exists():
            for older in _HOME.glob("*/"):
                shutil.rmtree(older)
            _make(cluster)
    return cluster


def _fingerprint() -> str:
    """Return a hash of all files that a migration may read.

    If the hash changes, the cluster may need other tables, triggers or rows.
    """
    files = [
        ROOT / "requirements.txt",
        *(p for p in (ROOT / "portal").rglob("*") if p.suffix in (".py", ".sql")),
    ]
    digest = hashlib.sha256(str(postgres.server_binaries()).encode())
    for file in sorted(files):
        digest.update(f"{file}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _make(target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="ll-migrated-") as name:
        folder, logs = Path(name), RUN / "log"
        # The account that runs PostgreSQL must be able to enter this folder.
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
        unfinished = target.with_suffix(".unfinished")
        unfinished.mkdir()
        postgres.copy_cluster(cluster, unfinished)
        unfinished.rename(target)
