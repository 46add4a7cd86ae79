"""Starts the PostgreSQL and Redis that a test run asks for, and points Django's settings at them.

``--services private`` (the default): fresh ones, shared with no other run, so that several may go on side by
side. ``kept``: the same cluster each time, one run at a time, so that ``--reuse-db`` finds its tables again.
``none``: nothing is started, for tests that need no service.

A plugin (``-p`` in pyproject.toml) and not a conftest.py: it has to come before the first conftest that
imports a model, since settings read the environment once.
"""

import os
import shutil
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from devstack import postgres, services
from devstack.folders import RUN
from devstack.migrated_cluster import migrated_cluster

_services = pytest.StashKey[services.Services]()
_CHOICES = ("private", "kept", "none")
# Where nobody answers: a test that needs a service fails at once.
_NOBODY = ("postgres://nobody@127.0.0.1:1/none", "redis://127.0.0.1:1/0")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--services", choices=_CHOICES, default="private", help="PostgreSQL and Redis to use")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    chosen = early_config.known_args_namespace.services
    if early_config.known_args_namespace.numprocesses and "PYTEST_XDIST_WORKER" not in os.environ:
        chosen = "none"  # It only hands the tests out; each of its workers starts services of its own.
    folder = RUN / f"pytest-{os.getpid()}"
    running = ExitStack()
    early_config.add_cleanup(running.close)
    running.callback(shutil.rmtree, folder, ignore_errors=True)
    database_url, redis_url = _NOBODY
    if chosen != "none":
        started = running.enter_context(_started(folder, kept=chosen == "kept"))
        early_config.stash[_services] = started
        database_url, redis_url = started.database_url, started.redis_url
    # WhiteNoise warns of a folder that is not there, and reads everything in one that is.
    static = folder / "static"
    static.mkdir(parents=True)
    # A NetBox to test against is for the tests of NetBox alone.
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
        # Nora signs in with her password, except where the second factor is the subject.
        "LONGLINE_NOC_NEEDS_TOTP": "false",
        # A removal is not put off, except where the cooling-off is the subject.
        "LONGLINE_COOLING_OFF_S": "0",
        # Any rate will do, except where the least is the subject.
        "LONGLINE_MIN_CIR_BPS": "1",
        # Empty, but WhiteNoise warns of a folder that is not there.
        "STATIC_ROOT": str(static),
        "LOG_LEVEL": "WARNING",
    }
    from django.conf import settings

    # A connection that is kept would outlive its test and hold the test database open. Here alone: the
    # stacks that tests start keep theirs, as any installation does.
    settings.DATABASES["default"]["CONN_MAX_AGE"] = 0
    # Slow hashes protect real passwords; here they would only slow every login down.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    # Static files are looked for when one is asked for, not all of them for each client that a test makes.
    settings.WHITENOISE_AUTOREFRESH = True
    # Migrated already, except in a cluster that is kept.
    settings.DATABASES["default"]["TEST"] = {"TEMPLATE": postgres.DATABASE}


def _started(folder: Path, *, kept: bool) -> AbstractContextManager[services.Services]:
    if kept:
        return services.running(folder=RUN / "kept", logs=folder / "log", durable=False, kept=True)
    return services.running(folder=folder, logs=folder / "log", durable=False, template=migrated_cluster())


@pytest.fixture(scope="session")
def private_services(pytestconfig: pytest.Config) -> services.Services:
    """This run's PostgreSQL and Redis, for tests that start processes of their own."""
    return pytestconfig.stash[_services]
