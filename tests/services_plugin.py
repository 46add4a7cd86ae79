"""Gives every test run its own PostgreSQL and Redis, and Django settings that point at them.

A plugin (``-p`` in pyproject.toml) and not a conftest.py: it has to come before the first conftest that
imports a model, since settings read the environment once. Nothing here is shared with another run, so
several may go on side by side.
"""

import os
import shutil
from contextlib import ExitStack

import pytest

from devstack import services
from devstack.paths import RUN

_services = pytest.StashKey[services.Services]()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    folder = RUN / f"pytest-{os.getpid()}"
    running = ExitStack()
    early_config.add_cleanup(running.close)
    running.callback(shutil.rmtree, folder, ignore_errors=True)
    early_config.stash[_services] = started = running.enter_context(
        services.running(folder=folder, logs=folder / "log", durable=False)
    )
    # WhiteNoise warns of a folder that is not there, and reads everything in one that is.
    static = folder / "static"
    static.mkdir()
    # A NetBox to test against is for the tests of NetBox alone.
    for name in ("NETBOX_URL", "NETBOX_TOKEN"):
        if name in os.environ:
            os.environ[f"LIVE_{name}"] = os.environ.pop(name)
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "portal.settings",
        "SECRET_KEY": "for-tests-only",
        "TOKEN_PEPPER": "for-tests-only",
        "BASE_URL": "http://testserver",
        "DATABASE_URL": started.database_url,
        # A pooled connection would outlive its test and hold the test database open.
        "DATABASE_CONN_MAX_AGE": "0",
        "REDIS_URL": started.redis_url,
        "LONGLINE_PKI_DIR": str(folder / "pki"),
        # Nora signs in with her password, except where the second factor is the subject.
        "LONGLINE_NOC_NEEDS_TOTP": "false",
        # Empty, but WhiteNoise warns of a folder that is not there.
        "STATIC_ROOT": str(static),
        "LOG_LEVEL": "WARNING",
    }
    from django.conf import settings

    # Slow hashes protect real passwords; here they would only slow every login down.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(scope="session")
def private_services(pytestconfig: pytest.Config) -> services.Services:
    """This run's PostgreSQL and Redis, for tests that start processes of their own."""
    return pytestconfig.stash[_services]
