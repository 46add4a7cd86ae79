"""Debian's Chromium, and the whole product for it to look at."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from devstack import stack
from devstack.isp import small_isp
from devstack.paths import BUILD
from devstack.process import Family
from devstack.vppsim import SimulatedDataplane
from tests.browser.reader import Reader
from tests.integration.conftest import ada, alice, bakery, bob, charlie, dairy, isp, nina, nora

__all__ = ["ada", "alice", "bakery", "bob", "charlie", "dairy", "isp", "nina", "nora"]

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# Playwright's synchronous API keeps an event loop in this thread, in which Django would else refuse queries.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def reader(chromium: Browser) -> Iterator[Callable[..., Reader]]:
    """``reader(url, color_scheme="dark", viewport={...})``: somebody new, with nothing remembered."""
    contexts = []

    def new(url: str, **options: Any) -> Reader:
        context = chromium.new_context(**options)
        contexts.append(context)
        return Reader(page=context.new_page(), url=url)

    yield new
    for context in contexts:
        context.close()


@pytest.fixture(scope="package")
def running_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stack.Stack]:
    """Portal, worker, relay, beat, two agents and their stand-in VPPs, as real processes."""
    for program in ("vppsim", "longline-agent"):
        assert (BUILD / program).exists(), f"build/{program} is missing: run `make agent`"
    folder: Path = tmp_path_factory.mktemp("stack")
    the_isp, family = small_isp(), Family()
    dataplane = SimulatedDataplane(isp=the_isp, folder=folder / "vppsim", logs=folder / "log", family=family)
    with stack.running(
        folder=folder,
        logs=folder / "log",
        isp=the_isp,
        dataplane=dataplane,
        family=family,
        report_interval_s=2,
        durable=False,
    ) as running:
        stack.wait_for_reports(running)
        yield running
