"""NetBox's webhook starts the next import immediately; requests of other senders start nothing."""

import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from portal.api.v1.network.netbox import MAX_BODY
from portal.celery_tasks import SYNC_NETBOX
from portal.core import clock
from portal.netbox_sync.models import NetboxRun, NetboxState
from portal.netbox_sync.sync_run import sync_due
from tests.integration.netbox.stand_in import stand_in_netbox
from tests.integration.netbox.test_faults import empty_netbox
from tests.integration.requested_tasks import requested

pytestmark = pytest.mark.django_db
HOOK, SECRET = "/api/netbox/hook/", "whisper"
BODY = json.dumps({"event": "updated", "model": "interface", "data": {"id": 5}}).encode()


def signed(body: bytes, secret: str = SECRET) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha512).hexdigest()


def post(body: bytes = BODY, signature: str | None = None) -> int:
    signature = signed(body) if signature is None else signature
    return int(
        Client()
        .post(HOOK, body, content_type="application/json", headers={"X-Hook-Signature": signature})
        .status_code
    )


@pytest.fixture
def hooked(configured: Callable[..., None], settings: Any) -> None:
    configured("http://127.0.0.1:1")
    settings.NETBOX_WEBHOOK_SECRET = SECRET


def test_many_messages_make_one_run_at_once(hooked: None, configured: Callable[..., None]) -> None:
    with stand_in_netbox(empty_netbox) as stand_in:
        configured(stand_in.url)
        sync_due(now=clock.now())
        assert [post() for _ in range(5)] == [204] * 5
        assert len(requested(SYNC_NETBOX)) == 1
        sync_due(now=clock.now())
        sync_due(now=clock.now())
    assert list(NetboxRun.objects.order_by("id").values_list("why", flat=True)) == ["schedule", "webhook"]
    assert post() == 204
    assert len(requested(SYNC_NETBOX)) == 2


@pytest.mark.parametrize(
    "signature", ["", "0" * 128, signed(BODY, "another"), signed(BODY + b" "), "é" * 10, signed(BODY).upper()]
)
def test_who_does_not_know_the_secret_is_refused(hooked: None, signature: str) -> None:
    assert post(signature=signature) == 403
    assert not NetboxState.objects.filter(wanted_at__isnull=False).exists()


def test_a_message_without_end_is_refused(hooked: None) -> None:
    assert post(b"x" * (MAX_BODY + 1)) == 413


def test_only_post_is_taken(hooked: None) -> None:
    answer = Client().get(HOOK)
    assert (answer.status_code, answer["Allow"]) == (405, "POST")


def test_without_a_secret_there_is_no_such_address(hooked: None, settings: Any) -> None:
    settings.NETBOX_WEBHOOK_SECRET = ""
    assert post() == 404
