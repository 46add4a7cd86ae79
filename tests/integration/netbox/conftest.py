"""A NetBox for tests: every release that has recordings, or the one that NETBOX_URL names.

NETBOX_RECORD=1 in addition to NETBOX_URL and NETBOX_TOKEN writes the recordings again.
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.netbox.seeded import CUSTOMER_FIELD, ROLE, UNI, clear
from tests.integration.netbox.stand_in import Backend, Forwarding, Replaying, StandIn, stand_in_netbox

RECORDINGS = Path(__file__).parents[2] / "contract" / "netbox"
# Where the environment is read from before portal.settings sees it (tests/services_plugin.py).
LIVE_URL, LIVE_TOKEN = "LIVE_NETBOX_URL", "LIVE_NETBOX_TOKEN"
NO_TOKEN = "0123456789abcdef0123456789abcdef01234567"
LIVE = "live"


def releases() -> list[str]:
    return [LIVE] if os.environ.get(LIVE_URL) else sorted(path.name for path in RECORDINGS.glob("*"))


@pytest.fixture
def configured(settings: Any) -> Callable[..., None]:
    """Return ``configured(stand_in.url)``, which sets the URL of the portal's NetBox."""

    def configure(url: str, token: str = NO_TOKEN) -> None:
        settings.NETBOX_URL, settings.NETBOX_TOKEN = url, token
        settings.NETBOX_DEVICE_ROLES = [ROLE]
        settings.NETBOX_UNI_TAG, settings.NETBOX_CUSTOMER_FIELD = UNI, CUSTOMER_FIELD

    return configure


@pytest.fixture(params=releases())
def netbox(request: pytest.FixtureRequest, configured: Callable[..., None]) -> Iterator[StandIn]:
    """Yield a NetBox that contains only foreign objects; ``stand_in.token`` is its valid token."""
    name = re.sub(r"\W+", "-", request.node.originalname)
    with ExitStack() as opened:
        backend: Backend
        if request.param == LIVE:
            url, token = os.environ[LIVE_URL], os.environ[LIVE_TOKEN]
            clear(url, token)
            opened.callback(clear, url, token)
            backend = Forwarding(url)
        else:
            recording = RECORDINGS / request.param / f"{name}.json"
            if not recording.exists():
                pytest.skip(f"not recorded with NetBox {request.param}")
            backend, token = Replaying(recording), NO_TOKEN
        stand_in = opened.enter_context(stand_in_netbox(backend))
        stand_in.token = token
        configured(stand_in.url, token)
        failed_before = request.session.testsfailed
        yield stand_in
        if isinstance(backend, Replaying):
            assert backend.wrong == []
            assert backend.left == 0, "the recording goes on"
        elif os.environ.get("NETBOX_RECORD") and request.session.testsfailed == failed_before:
            _write(name, backend.exchanges, os.environ[LIVE_URL], token)


def _write(name: str, exchanges: list[dict[str, Any]], url: str, token: str) -> None:
    status = httpx.get(
        f"{url}/api/status/", headers={"Authorization": _authorization(token)}, trust_env=False
    )
    release = status.json()["netbox-version"].split("-")[0]
    folder = RECORDINGS / ".".join(release.split(".")[:2])
    folder.mkdir(parents=True, exist_ok=True)
    # One exchange per line, so that diffs of recordings are readable.
    lines = ",\n".join(json.dumps(exchange, ensure_ascii=False) for exchange in exchanges)
    text = f'{{"netbox": "{release}", "exchanges": [\n{lines}\n]}}'
    assert token not in text
    (folder / f"{name}.json").write_text(text + "\n")


def _authorization(token: str) -> str:
    return f"Bearer {token}" if token.startswith("nbt_") else f"Token {token}"
