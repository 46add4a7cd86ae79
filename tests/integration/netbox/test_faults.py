"""While NetBox is down, slow or sends errors, orders continue; later the export catches up."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from portal.accounts.models import User
from portal.alarms.kinds import Kind
from portal.core import clock
from portal.inventory.models import Router
from portal.netbox_sync import client
from portal.netbox_sync.models import NetboxRun, NetboxState
from portal.netbox_sync.netbox_status import netbox_status
from portal.netbox_sync.sync_run import sync_due
from portal.vll.states import OrderState
from tests.integration.isp import Isp
from tests.integration.netbox.stand_in import Answer, Backend, Request, StandIn, stand_in_netbox
from tests.integration.orders import order
from tests.integration.raised_alarms import alarm_texts, alarms_found

pytestmark = pytest.mark.django_db
STATUS = {"netbox-version": "4.4.10"}
NOTHING = {"count": 0, "next": None, "previous": None, "results": []}


def answer(status: int, content: Any = None, **headers: str) -> Answer:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return Answer(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


def empty_netbox(request: Request) -> Answer:
    return answer(200, STATUS if request.path == "/api/status/" else NOTHING)


def failing(wrong: Answer) -> Backend:
    """Return a backend that reports its version and then fails."""
    return lambda request: answer(200, STATUS) if request.path == "/api/status/" else wrong


@pytest.fixture
def at(configured: Callable[..., None]) -> Callable[[Backend], Any]:
    @contextmanager
    def opened(backend: Backend) -> Iterator[StandIn]:
        with stand_in_netbox(backend) as stand_in:
            configured(stand_in.url)
            yield stand_in

    return opened


def state() -> NetboxState:
    return NetboxState.objects.get()


def code() -> str:
    found = state().error
    return str(found["code"]) if found else ""


CASES = {
    "unknown token": (answer(403, {"detail": "Invalid v1 token"}), "token_refused"),
    "no token": (answer(401, {"detail": "Authentication credentials were not provided."}), "token_refused"),
    "forbidden": (
        answer(403, {"detail": "You do not have permission to perform this action."}),
        "not_permitted",
    ),
    "busy": (answer(429, {"detail": "slow down"}, Retry_After="77"), "busy"),
    "broken": (answer(500, {"error": "boom"}), "broken"),
    "proxy without NetBox": (answer(502, b"<html>Bad Gateway</html>"), "broken"),
    "login page": (answer(200, b"<html>Log in</html>"), "nonsense"),
    "truncated response": (answer(200, b'{"count": 3, "results": [{"id"'), "nonsense"),
    "row without an id": (answer(200, {"count": 1, "results": [{"name": "no id"}]}), "nonsense"),
    "list of numbers": (answer(200, [1, 2, 3]), "nonsense"),
    "device without a site": (answer(200, {"count": 1, "next": None, "results": [{"id": 1}]}), "nonsense"),
    "redirect to another host": (answer(302, b"", Location="http://169.254.169.254/latest/"), "nonsense"),
    "endless redirects": (answer(302, b"", Location="/api/dcim/devices/"), "away"),
    "unknown role": (answer(400, {"role": ["Select a valid choice."]}), "refused"),
}


@pytest.mark.parametrize(("wrong", "expected"), CASES.values(), ids=CASES)
def test_failure_is_stored_and_netbox_is_not_queried_for_a_while(
    at: Callable[[Backend], Any], wrong: Answer, expected: str
) -> None:
    now = clock.now()
    with at(failing(wrong)) as stand_in:
        sync_due(now=now)
        assert code() == expected
        run = NetboxRun.objects.get()
        assert (run.error["code"], run.finished_at is not None) == (expected, True)
        assert state().retry_at >= now + timedelta(seconds=77 if expected == "busy" else 15)
        status = netbox_status(now)
        assert status is not None
        assert status.stale
        assert status.error
        assert "{" not in status.error.replace('{"', "").replace("{'", "")
        requests_before = len(stand_in.requests)
        sync_due(now=now + timedelta(seconds=5))
        assert len(stand_in.requests) == requests_before
    with at(empty_netbox):
        sync_due(now=state().retry_at)
        assert code() == ""
        assert state().failures == 0


def test_closed_port_is_reported(configured: Callable[..., None]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        configured(f"http://127.0.0.1:{taken.getsockname()[1]}")
        sync_due(now=clock.now())
    assert code() == "away"


def test_dropped_connection_is_reported(at: Callable[[Backend], Any]) -> None:
    with at(lambda request: None):
        sync_due(now=clock.now())
    assert code() == "away"


def test_netbox_without_a_response_blocks_nothing(at: Callable[[Backend], Any], settings: Any) -> None:
    settings.NETBOX_TIMEOUT_S = 0.2

    def sleeping(request: Request) -> Answer:
        time.sleep(1)
        return answer(200, STATUS)

    with at(sleeping):
        sync_due(now=clock.now())
    assert code() == "away"
    assert "in time" in state().error["facts"]["why"]


def test_response_in_single_bytes_is_ended(configured: Callable[..., None], settings: Any) -> None:
    settings.NETBOX_TOTAL_S = 0.5
    with socket.create_server(("127.0.0.1", 0)) as server:
        configured(f"http://127.0.0.1:{server.getsockname()[1]}")

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                try:
                    while True:
                        connection.sendall(b" ")
                        time.sleep(0.05)
                except OSError:
                    return

        thread = threading.Thread(target=drip)
        thread.start()
        sync_due(now=clock.now())
        thread.join(10)
        assert not thread.is_alive()
    assert code() == "away"


def test_endless_response_is_cut_off(at: Callable[[Backend], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_ANSWER", 1000)
    with at(failing(answer(200, b" " * 5000))):
        sync_due(now=clock.now())
    assert code() == "nonsense"


def test_endless_pages_are_read_once(at: Callable[[Backend], Any]) -> None:
    """The backend names itself as the next page, and counts more objects than it has."""

    def endless(request: Request) -> Answer:
        if request.path == "/api/status/":
            return answer(200, STATUS)
        row = {"id": 1, "name": "rhino", "site": {"id": 1, "name": "Bern"}}
        first = ["id__gt", "1"] not in request.query
        rows = [row] if first and request.path == "/api/dcim/devices/" else []
        return answer(200, {"count": 10**6, "next": request.path, "previous": None, "results": rows})

    with at(endless) as stand_in:
        sync_due(now=clock.now())
        assert sum(each.path == "/api/dcim/devices/" for each in stand_in.requests) == 2
    assert code() == ""


class Devices:
    """A NetBox with routers, with pages like NetBox's. ``between``: called before each page of devices."""

    def __init__(self, count: int) -> None:
        self.ids = list(range(1, count + 1))
        self.between: Callable[[int], None] = lambda page: None
        self.pages = 0

    def __call__(self, request: Request) -> Answer:
        if request.path != "/api/dcim/devices/":
            return empty_netbox(request)
        self.pages += 1
        self.between(self.pages)
        query = dict(request.query)
        found = [each for each in self.ids if each > int(query.get("id__gt", 0))]
        first, size = int(query.get("offset", 0)), int(query["limit"])
        rows = [
            {"id": each, "name": f"r{each}", "site": {"id": 1, "name": "Bern"}}
            for each in found[first : first + size]
        ]
        return answer(200, {"count": len(found), "next": None, "previous": None, "results": rows})


def gone() -> set[str]:
    run = NetboxRun.objects.latest("finished_at")
    assert run.error is None
    return {each["subject"] for each in run.findings if each["code"] == "gone"}


def synchronized() -> None:
    NetboxRun.objects.create(why="person", requested_at=clock.now())
    sync_due(now=clock.now())


def test_deletion_between_two_pages_hides_no_other_object(
    at: Callable[[Backend], Any], settings: Any
) -> None:
    settings.NETBOX_PAGE = 2
    netbox = Devices(5)

    def delete_the_first(page: int) -> None:
        if page == 2:
            netbox.ids.remove(1)

    netbox.between = delete_the_first
    with at(netbox):
        synchronized()
    assert set(Router.objects.values_list("name", flat=True)) == {"r1", "r2", "r3", "r4", "r5"}


def test_object_missing_from_a_single_read_is_not_reported_as_gone(at: Callable[[Backend], Any]) -> None:
    netbox = Devices(3)
    with at(netbox):
        synchronized()

        def hide_once(page: int) -> None:
            netbox.ids = [1, 3] if page == 1 else [1, 2, 3]

        netbox.pages, netbox.between = 0, hide_once
        synchronized()
        assert (netbox.pages, gone()) == (2, set())

        netbox.pages, netbox.between = 0, lambda page: netbox.ids.remove(2) if page == 1 else None
        synchronized()
        assert (netbox.pages, gone()) == (2, {"r2"})
        # Two earlier checks have already read the list without this object.
        netbox.pages, netbox.between = 0, lambda page: None
        synchronized()
        assert (netbox.pages, gone()) == (1, {"r2"})


def test_repeated_pages_are_refused(at: Callable[[Backend], Any], settings: Any) -> None:
    settings.NETBOX_PAGE = 1

    def repeating(request: Request) -> Answer:
        if request.path != "/api/dcim/devices/":
            return empty_netbox(request)
        row = {"id": 1, "name": "r1", "site": {"id": 1, "name": "Bern"}}
        return answer(200, {"count": 5, "next": None, "previous": None, "results": [row]})

    with at(repeating) as stand_in:
        sync_due(now=clock.now())
        assert len(stand_in.requests) < 5
    assert code() == "nonsense"


def test_too_old_release_is_reported(at: Callable[[Backend], Any]) -> None:
    with at(lambda request: answer(200, {"netbox-version": "4.1.11"})):
        sync_due(now=clock.now())
    assert code() == "too_old"


def test_orders_continue_without_netbox(configured: Callable[..., None], isp: Isp, alice: User) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        configured(f"http://127.0.0.1:{taken.getsockname()[1]}")
        sync_due(now=clock.now())
        assert order(isp, alice).state == OrderState.ACKNOWLEDGED
    [alarm] = alarm_texts(Kind.NETBOX)
    assert "does not answer" in alarm
    status = netbox_status(clock.now())
    assert status is not None
    assert status.waiting == 1


def test_portal_without_netbox_has_no_status_and_no_alarm(db: None) -> None:
    assert netbox_status(clock.now()) is None
    sync_due(now=clock.now())
    assert not NetboxState.objects.exists()
    assert alarms_found(Kind.NETBOX) == alarms_found(Kind.NETBOX_LINES) == []


def test_token_without_permission_for_custom_fields_is_reported(
    at: Callable[[Backend], Any], isp: Isp, alice: User
) -> None:
    """The import continues without that permission. The export waits for it and writes nothing."""

    def strict(request: Request) -> Answer:
        if request.method == "GET":
            return empty_netbox(request)
        return answer(403, {"detail": "You do not have permission to perform this action."})

    order(isp, alice)
    with at(strict) as stand_in:
        sync_due(now=clock.now())
        assert stand_in.writes == [("POST", "/api/extras/custom-fields/")]
    status = netbox_status(clock.now())
    assert status is not None
    assert (code(), status.stale, status.waiting) == ("not_permitted", False, 1)
    assert "does not let this token POST extras.custom-fields" in status.error
