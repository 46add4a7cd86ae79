"""Debian's headless Chromium."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection
from playwright.sync_api import Browser, sync_playwright

from tests.browser.reader import Reader
from tests.integration.conftest import ada, alice, bakery, bob, charlie, dairy, isp, nina, nora

__all__ = ["ada", "alice", "bakery", "bob", "charlie", "dairy", "isp", "nina", "nora"]

CHROMIUM = "/usr/bin/chromium-headless-shell"
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# Playwright's synchronous API keeps an event loop in this thread. Without this setting Django would refuse
# queries here.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"


@pytest.fixture(scope="package", autouse=True)
def kept_database_connections() -> Iterator[None]:
    """Let Django's test server keep one database connection for each connection of the browser."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(connection.settings_dict, "CONN_MAX_AGE", 60)
        yield


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def reader(chromium: Browser) -> Iterator[Callable[..., Reader]]:
    """Yield ``reader(url, color_scheme="dark", viewport={...})``, which returns a person without cookies."""
    contexts = []

    def new(url: str, **options: Any) -> Reader:
        context = chromium.new_context(**options)
        contexts.append(context)
        return Reader(page=context.new_page(), url=url)

    yield new
    for context in contexts:
        context.close()
