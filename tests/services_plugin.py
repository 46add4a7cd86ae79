"""A pytest plugin that starts PostgreSQL and Redis for a test run, and sets Django's settings accordingly.

``--services`` has three values:

* ``private``, the default: new services for each run, so that several runs can happen at once.
* ``kept``: the same cluster for each run, one run at a time, so that ``--reuse-db`` finds its tables again.
* ``none``: no services, for tests that need none.

It is a plugin (``-p`` in pyproject.toml) and not a conftest.py. Settings read the environment once, so it has
to run before the first conftest that imports a model.
"""

import os
import shutil
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from devstack import services
from devstack.databases import postgres
from devstack.databases.postgres import migrated_cluster
from devstack.folders import RUN

_services = pytest.StashKey[services.Services]()
_CHOICES = ("private", "kept", "none")
# Nothing listens on port 1, so a test that needs a service fails at once.
_NOBODY = ("postgres://nobody@127.0.0.1:1/none", "redis://127.0.0.1:1/0")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--services", choices=_CHOICES, default="private", help="PostgreSQL and Redis to use")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    chosen = early_config.known_args_namespace.services
    if early_config.known_args_namespace.numprocesses and "PYTEST_XDIST_WORKER" not in os.environ:
        chosen = "none"  # The controller only distributes tests; each worker starts its own services.
    folder = RUN / f"pytest-{os.getpid()}"
    running = ExitStack()
    early_config.add_cleanup(running.close)
    running.callback(shutil.rmtree, folder, ignore_errors=True)
    database_url, redis_url = _NOBODY
    if chosen != "none":
        started = running.enter_context(_started(folder, kept=chosen == "kept"))
        early_config.stash[_services] = started
        database_url, redis_url = started.database_url, started.redis_url
    # WhiteNoise warns about a missing folder, and reads all files of an existing one.
    static = folder / "static"
    static.mkdir(parents=True)
    # Only the tests of NetBox use a NetBox server.
    for name in ("NETBOX_URL", "NETBOX_TOKEN"):
        if name in os.environ:
            os.environ[f"LIVE_{name}"] = os.environ.pop(name)
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "portal.settings",
        "SECRET_KEY": "for-tests-only",
        "TOKEN_PEPPER": "for-tests-only",
        "BASE_URL": "http://testserver",
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "LONGLINE_PKI_DIR": str(folder / "pki"),
        # Nora signs in with her password, except in tests of the second factor.
        "LONGLINE_NOC_NEEDS_TOTP": "false",
        # Removals are immediate, except in tests of the cooling-off period.
        "LONGLINE_COOLING_OFF_S": "0",
        # Any rate is allowed, except in tests of the minimum.
        "LONGLINE_MIN_CIR_BPS": "1",
        # An empty folder, because WhiteNoise warns about a missing one.
        "STATIC_ROOT": str(static),
        "LOG_LEVEL": "WARNING",
    }
    from django.conf import settings

    # A kept connection would outlive its test and keep the test database open. The stacks that tests start
    # keep theirs, as any installation does.
    settings.DATABASES["default"]["CONN_MAX_AGE"] = 0
    # Slow hashes protect real passwords; in tests they would only slow down every login.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    # Find a static file when it is requested, instead of all files for each test client.
    settings.WHITENOISE_AUTOREFRESH = True
    # The template is migrated already, except in a kept cluster.
    settings.DATABASES["default"]["TEST"] = {"TEMPLATE": postgres.DATABASE}


def _started(folder: Path, *, kept: bool) -> AbstractContextManager[services.Services]:
    if kept:
        return services.running(folder=RUN / "kept", logs=folder / "log", durable=False, kept=True)
    return services.running(folder=folder, logs=folder / "log", durable=False, template=migrated_cluster())


@pytest.fixture(scope="session")
def private_services(pytestconfig: pytest.Config) -> services.Services:
    """Return this run's PostgreSQL and Redis, for tests that start their own processes."""
    return pytestconfig.stash[_services]
