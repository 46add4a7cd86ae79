"""The NOC's page of NetBox: state, differences, and who may start an import."""

from collections.abc import Callable

import pytest

from portal.accounts.models import User
from portal.celery_tasks import SYNC_NETBOX
from portal.core import clock
from portal.inventory.models import Site
from portal.netbox_sync.models import NetboxRun
from portal.netbox_sync.sync_run import claim, sync_due
from tests.integration.api.test_api_v1 import client
from tests.integration.netbox.stand_in import Answer, Request, stand_in_netbox
from tests.integration.netbox.test_faults import STATUS, answer, failing
from tests.integration.requested_tasks import requested
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
PAGE = "/noc/netbox/"
EVIL = "{{ 7 }}{0}%(x)s<script>"


def two_routers(request: Request) -> Answer:
    """Return one router that can be imported, and one with a template expression as its name."""
    if request.path == "/api/status/":
        return answer(200, STATUS)
    rows = []
    if request.path == "/api/dcim/devices/":
        site = {"id": 1, "name": "Bern"}
        rows = [{"id": n, "name": name, "site": site} for n, name in ((1, "rhino"), (2, EVIL))]
    return answer(200, {"count": len(rows), "next": None, "previous": None, "results": rows})


def test_noc_admin_reads_the_proposed_changes_and_imports_them(
    configured: Callable[..., None], nina: User
) -> None:
    browser = signed_in(nina)
    with stand_in_netbox(two_routers) as stand_in:
        configured(stand_in.url)
        assert browser.post("/noc/netbox/run/", {"do": "look"}).status_code == 302
        assert len(requested(SYNC_NETBOX)) == 1
        assert "waiting" in text(browser.get(PAGE))
        sync_due(now=clock.now())
        page = browser.get(PAGE)
        shown = text(page)
        assert "What would be imported (2)" in shown
        assert "rhino router, new" in shown
        assert "Its name cannot be a router's" in shown
        assert EVIL in shown
        assert b"<script>" not in page.content.split(b'id="netbox"')[1].split(b"</main>")[0]
        assert not Site.objects.exists()
        browser.post("/noc/netbox/run/", {"do": "apply"})
        sync_due(now=clock.now())
    shown = text(browser.get(PAGE))
    assert "Imported last (2)" in shown
    assert Site.objects.get().name == "Bern"
    assert "Version 4.4.10" in shown


def test_waiting_run_of_a_closed_account_is_not_made(
    configured: Callable[..., None], nina: User, nora: User
) -> None:
    with stand_in_netbox(two_routers) as stand_in:
        configured(stand_in.url)
        assert signed_in(nina).post("/noc/netbox/run/", {"do": "apply"}).status_code == 302
        User.objects.filter(pk=nina.pk).update(is_active=False)
        sync_due(now=clock.now())
    run = NetboxRun.objects.get(why=NetboxRun.Why.PERSON)
    assert (run.started_at, run.finished_at is not None) == (None, True)
    assert run.error == {"code": "not_allowed", "facts": {"person": "nina"}}
    assert "nina may no longer do this" in text(signed_in(nora).get(PAGE))


def test_page_says_why_netbox_cannot_be_read(configured: Callable[..., None], nora: User) -> None:
    with stand_in_netbox(failing(answer(403, {"detail": "Invalid v1 token"}))) as stand_in:
        configured(stand_in.url)
        sync_due(now=clock.now())
        shown = text(signed_in(nora).get(PAGE))
    assert "NetBox does not accept the token (403)" in shown
    assert "Last read never" in shown
    assert "Import changes" not in shown


def test_only_noc_admins_start_runs(configured: Callable[..., None], nora: User, alice: User) -> None:
    configured("http://127.0.0.1:1")
    assert signed_in(nora).post("/noc/netbox/run/", {"do": "apply"}).status_code == 403
    assert signed_in(alice).get(PAGE).status_code == 403
    assert not NetboxRun.objects.exists()


def test_repeated_requests_make_one_run(configured: Callable[..., None], nina: User) -> None:
    configured("http://127.0.0.1:1")
    browser = signed_in(nina)
    for _ in range(3):
        browser.post("/noc/netbox/run/", {"do": "look"})
    assert browser.post("/noc/netbox/run/", {"do": "dance"}).status_code == 400
    assert NetboxRun.objects.count() == 1


def test_page_is_absent_without_netbox(nora: User) -> None:
    browser = signed_in(nora)
    assert browser.get(PAGE).status_code == 404
    assert "NetBox" not in text(browser.get("/noc/"))


def test_only_one_process_reads_netbox_at_a_time(configured: Callable[..., None], nina: User) -> None:
    with stand_in_netbox(two_routers) as stand_in:
        configured(stand_in.url)
        now = clock.now()
        first = claim(now)
        assert first is not None
        sync_due(now=now)
        assert stand_in.requests == []
        first.release()
        sync_due(now=now)
        assert stand_in.requests != []


def test_run_of_a_killed_worker_is_ended_by_the_next(configured: Callable[..., None]) -> None:
    killed = NetboxRun.objects.create(why="schedule", requested_at=clock.now(), started_at=clock.now())
    with stand_in_netbox(two_routers) as stand_in:
        configured(stand_in.url)
        sync_due(now=clock.now())
    killed.refresh_from_db()
    assert killed.error == {"code": "cut_off", "facts": {}}
    assert Site.objects.exists()


def test_api_shows_the_status_to_the_noc(configured: Callable[..., None], nora: User, alice: User) -> None:
    api = client(nora)
    assert api.get("/api/v1/netbox").json()["configured"] is False
    assert client(alice).get("/api/v1/netbox").status_code == 403
    with stand_in_netbox(two_routers) as stand_in:
        configured(stand_in.url)
        assert (api.get("/api/v1/netbox").json()["stale"], stand_in.requests) == (True, [])
        sync_due(now=clock.now())
    status = api.get("/api/v1/netbox").json()
    assert {
        name: status[name] for name in ("release", "stale", "error", "lines_waiting", "lines_in_error")
    } == {
        "release": "4.4.10",
        "stale": False,
        "error": None,
        "lines_waiting": 0,
        "lines_in_error": 0,
    }
