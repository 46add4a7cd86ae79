"""Webhooks lead to the Internet only, in any spelling of an address and with any response of DNS."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest

from portal.core.errors import DomainError
from portal.notifications import http_post
from portal.notifications.errors import (
    WebhookAddressNotPublic,
    WebhookPlainHttp,
    WebhookPortRefused,
    WebhookUrlUnreadable,
)
from portal.notifications.http_post import Outcome, by_turns, post
from portal.notifications.public_address_check import Address, Rules, is_public, rules, usable_url
from tests.integration.notifications.receiver import Receiver, certified, receiving

PUBLIC_ONLY = Rules(networks=(), ports=frozenset({443, 8443}), plain_http=False)
LOOPBACK = Rules(networks=(ip_network("127.0.0.1/32"),), ports=frozenset({443}), plain_http=True)

NOT_PUBLIC = {
    "this host": "127.0.0.1",
    "this host, by another number": "127.8.9.10",
    "any address of this host": "0.0.0.0",  # noqa: S104
    "private, 10": "10.1.2.3",
    "private, 172": "172.31.255.255",
    "private, 192": "192.168.1.1",
    "carrier-grade NAT": "100.64.0.1",
    "link-local, as clouds' metadata": "169.254.169.254",
    "protocol assignments": "192.0.0.8",
    "documentation": "198.51.100.7",
    "benchmarks": "198.18.0.1",
    "6to4 relays": "192.88.99.1",
    "multicast": "224.0.0.1",
    "reserved": "240.0.0.1",
    "broadcast": "255.255.255.255",
    "this host, v6": "::1",
    "unspecified, v6": "::",
    "unique local": "fd00::1",
    "link-local, v6": "fe80::1",
    "link-local with a zone": "fe80::1%lo",
    "site-local": "fec0::1",
    "multicast, v6": "ff02::1",
    "documentation, v6": "2001:db8::1",
    "v4-mapped": "::ffff:10.0.0.1",
    "v4-mapped loopback": "::ffff:127.0.0.1",
    "v4-compatible": "::127.0.0.1",
    "NAT64 of a private address": "64:ff9b::10.0.0.1",
    "NAT64 of the metadata service": "64:ff9b::169.254.169.254",
    "local NAT64": "64:ff9b:1::8.8.8.8",
    "6to4": "2002:7f00:1::1",
    "Teredo": "2001:0:5ef5:79fb::1",
}


@pytest.mark.parametrize("text", NOT_PUBLIC.values(), ids=NOT_PUBLIC)
def test_an_address_that_is_not_the_internets_is_refused(text: str) -> None:
    assert not is_public(ip_address(text))


@pytest.mark.parametrize(
    "text", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "193.5.1.1"]
)
def test_an_address_of_the_internet_is_not(text: str) -> None:
    assert is_public(ip_address(text))


@pytest.mark.parametrize(
    ("url", "refusal"),
    [
        ("https://127.0.0.1/", WebhookAddressNotPublic),
        ("https://2130706433/", WebhookAddressNotPublic),
        ("https://0x7f000001/", WebhookAddressNotPublic),
        ("https://017700000001/", WebhookAddressNotPublic),
        ("https://127.1/", WebhookAddressNotPublic),
        ("https://[::1]/", WebhookAddressNotPublic),
        ("https://[::ffff:a00:1]/", WebhookAddressNotPublic),
        ("https://[fe80::1]/", WebhookAddressNotPublic),
        ("https://0177.0.0.1/", WebhookUrlUnreadable),
        ("http://hooks.example.net/", WebhookPlainHttp),
        ("https://hooks.example.net:22/", WebhookPortRefused),
        ("https://8.8.8.8:25/", WebhookPortRefused),
        ("https://user:word@hooks.example.net/", WebhookUrlUnreadable),
        ("ftp://hooks.example.net/", WebhookUrlUnreadable),
        ("file:///etc/passwd", WebhookUrlUnreadable),
        ("//hooks.example.net/", WebhookUrlUnreadable),
        ("hooks.example.net", WebhookUrlUnreadable),
        ("https://", WebhookUrlUnreadable),
        ("", WebhookUrlUnreadable),
        ("https://hooks.example.net/\r\nX: y", WebhookUrlUnreadable),
        ("https://hooks.example.net/" + "x" * 500, WebhookUrlUnreadable),
        ("https://exa mple.net:99999/", WebhookUrlUnreadable),
    ],
)
def test_a_url_that_cannot_be_called_is_refused_when_it_is_entered(
    url: str, refusal: type[DomainError]
) -> None:
    with pytest.raises(refusal):
        usable_url(url, allowed=PUBLIC_ONLY)


@pytest.mark.parametrize(
    ("url", "stored"),
    [
        ("https://hooks.example.net/in?key=1#part", "https://hooks.example.net/in?key=1"),
        ("https://hooks.example.net:8443", "https://hooks.example.net:8443"),
        ("  https://Hooks.Example.net/ ", "https://hooks.example.net/"),
    ],
)
def test_a_url_is_stored_as_it_is_called(url: str, stored: str) -> None:
    assert usable_url(url, allowed=PUBLIC_ONLY) == stored


def test_the_isps_own_systems_are_for_the_nocs_webhooks_alone(settings: Any) -> None:
    settings.LONGLINE_WEBHOOK_NOC_NETWORKS = ["10.9.0.0/16"]
    assert usable_url("https://10.9.0.7:9000/", allowed=rules(of_the_noc=True))
    with pytest.raises(WebhookAddressNotPublic):
        usable_url("https://10.9.0.7:9000/", allowed=rules(of_the_noc=False))
    with pytest.raises(WebhookAddressNotPublic):
        usable_url("https://10.8.0.7/", allowed=rules(of_the_noc=True))


def sent(
    url: str, *, allowed: Rules = LOOPBACK, resolve: Any = http_post.resolve, total_s: float = 30
) -> Outcome:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(http_post, "resolve", resolve)
        patched.setattr(http_post, "TOTAL_S", total_s)
        return post(url, b"{}", headers=[("webhook-id", "msg_1")], rules=allowed)


@pytest.mark.parametrize("host", ["localhost", "2130706433", "0x7f.1"])
def test_a_name_that_leads_to_this_host_is_refused_when_it_is_called(receiver: Receiver, host: str) -> None:
    outcome = sent(f"http://{host}:{receiver.port}/", allowed=Rules((), frozenset({receiver.port}), True))
    assert (outcome.error, receiver.got) == ("notPublic", [])


def test_one_address_that_is_not_public_is_enough_to_refuse_a_name(receiver: Receiver) -> None:
    def both(host: str, port: int) -> list[Address]:
        return [ip_address("127.0.0.1"), ip_address("10.0.0.1")]

    outcome = sent(f"http://hooks.example.net:{receiver.port}/", resolve=both)
    assert (outcome.error, receiver.got) == ("notPublic", [])


def test_the_name_is_resolved_once_and_the_checked_address_is_used(receiver: Receiver) -> None:
    """DNS rebinding: the first answer passes the check, the second would be the target."""
    answers = [[ip_address("127.0.0.1")], [ip_address("127.0.0.2")]]
    with receiving(address="127.0.0.2") as inside:
        outcome = sent(
            f"http://hooks.example.net:{receiver.port}/", resolve=lambda host, port: answers.pop(0)
        )
    assert outcome.delivered
    assert [got.headers["host"] for got in receiver.got] == [f"hooks.example.net:{receiver.port}"]
    assert (len(answers), inside.got) == (1, [])


EVERYWHERE_HERE = Rules(
    networks=(ip_network("127.0.0.0/8"), ip_network("::1/128")), ports=frozenset({443}), plain_http=True
)


@contextmanager
def dropping_packets(address: str, port: int) -> Iterator[None]:
    """While the block runs, a connection to this address hangs: its queue is full, and no one accepts."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server((address, port), family=family, backlog=0))
        for _ in range(4):
            filling = stack.enter_context(socket.socket(family))
            filling.setblocking(False)
            filling.connect_ex(server.getsockname())
        yield


@pytest.mark.parametrize("dead", [["::1"], ["127.0.0.2"], ["::1", "127.0.0.2", "127.0.0.3"]])
def test_an_address_that_drops_packets_delays_the_next_one_only_briefly(
    receiver: Receiver, dead: list[str]
) -> None:
    addresses = [ip_address(each) for each in [*dead, "127.0.0.1"]]
    with ExitStack() as stack:
        for each in dead:
            stack.enter_context(dropping_packets(each, receiver.port))
        # The kernel sends a refused SYN again after 1 s, 3 s and 7 s: no attempt ends within these 5 s.
        outcome = sent(
            f"http://hooks.example.net:{receiver.port}/",
            allowed=EVERYWHERE_HERE,
            resolve=lambda host, port: addresses,
            total_s=5,
        )
    assert (outcome.error, outcome.status) == ("", 204)
    assert len(receiver.got) == 1


def test_only_addresses_that_drop_packets_are_a_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with dropping_packets("127.0.0.2", port), dropping_packets("127.0.0.3", port):
        outcome = sent(
            f"http://hooks.example.net:{port}/",
            allowed=EVERYWHERE_HERE,
            resolve=lambda host, port: [ip_address("127.0.0.2"), ip_address("127.0.0.3")],
            total_s=1,
        )
    assert (outcome.error, outcome.status) == ("timeout", None)


def test_an_address_that_refuses_is_followed_by_the_next(receiver: Receiver) -> None:
    outcome = sent(
        f"http://hooks.example.net:{receiver.port}/",
        allowed=EVERYWHERE_HERE,
        resolve=lambda host, port: [ip_address("::1"), ip_address("127.0.0.2"), ip_address("127.0.0.1")],
    )
    assert outcome.delivered


def test_families_take_turns() -> None:
    six, four = ip_address("2001:db8::1"), ip_address("192.0.2.1")
    assert by_turns([six, six + 1, six + 2, four]) == [six, four, six + 1, six + 2]
    assert by_turns([four, six]) == [four, six]


def test_a_redirect_is_a_failure_and_leads_nowhere(receiver: Receiver) -> None:
    with receiving() as inside:
        for status in (301, 302, 303, 307, 308):
            receiver.answers, receiver.location = [status], inside.url
            outcome = sent(receiver.url)
            assert (outcome.status, outcome.error) == (status, "redirect")
    assert inside.got == []


def test_what_a_receiver_says_of_when_to_come_back_is_known(receiver: Receiver) -> None:
    receiver.answers, receiver.retry_after = [503], "120"
    assert (outcome := sent(receiver.url)).error == "status"
    assert outcome.retry_after == "120"
    receiver.retry_after = ""
    assert sent(receiver.url).retry_after == ""


def test_proxies_of_the_environment_are_ignored(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert sent(receiver.url).delivered
    assert (len(receiver.got), proxy.got) == (1, [])


def test_an_answer_that_drips_ends_in_time(receiver: Receiver) -> None:
    receiver.drip_s = 0.05
    began = time.monotonic()
    outcome = sent(receiver.url, total_s=0.5)
    assert outcome.error == "timeout"
    # Each byte comes well before any timeout of a single read; whole, the head would take some seconds.
    assert time.monotonic() - began < len("HTTP/1.1 204 X\r\nContent-Length: 0\r\n\r\n") * 0.05


def test_a_receiver_that_took_it_may_drip_what_it_says(receiver: Receiver) -> None:
    receiver.answers, receiver.body = [200], b"x" * 1_000_000
    outcome = sent(receiver.url)
    assert outcome.delivered
    assert outcome.answer == "x" * 1000


def test_a_name_server_that_hangs_ends_in_time() -> None:
    def hangs(host: str, port: int) -> list[Address]:
        time.sleep(30)
        return []

    assert sent("http://hooks.example.net/", resolve=hangs, total_s=0.2).error == "timeout"


def test_no_more_than_64_kib_are_read() -> None:
    """80 KiB of headers, which HTTP libraries take: the status comes first, and is not believed."""
    said = b"HTTP/1.1 200 OK\r\n" + (b"X-More: " + b"x" * 1014 + b"\r\n") * 80 + b"\r\n"

    def pour(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection, suppress(OSError):
            connection.recv(65536)
            connection.sendall(said)
            # Until the other side has closed.
            connection.recv(1)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=pour, args=[server], daemon=True)
        thread.start()
        outcome = sent(f"http://127.0.0.1:{server.getsockname()[1]}/")
        thread.join(5)
        assert not thread.is_alive(), "the connection was left open"
    assert (outcome.status, outcome.error) == (None, "notHttp")


def test_what_cannot_be_reached_says_why(receiver: Receiver) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert sent(f"http://127.0.0.1:{port}/").error == "unreachable"
    assert sent("http://nowhere.invalid/").error == "noSuchHost"
    receiver.answers = [410, 500, 404]
    assert [sent(receiver.url).error for _ in range(3)] == ["gone", "status", "status"]


class TestHttps:
    @pytest.fixture(autouse=True)
    def reload_trust(self) -> Any:
        http_post._tls.cache_clear()
        yield
        http_post._tls.cache_clear()

    def test_the_certificate_is_checked_for_the_name(self, tmp_path: Path, settings: Any) -> None:
        context, trusted = certified(tmp_path, "hooks.example.net")
        settings.LONGLINE_WEBHOOK_CA_FILE = str(trusted)
        with receiving(tls=context) as receiver:
            here = [ip_address("127.0.0.1")]
            right = sent(f"https://hooks.example.net:{receiver.port}/", resolve=lambda host, port: here)
            wrong = sent(f"https://other.example.net:{receiver.port}/", resolve=lambda host, port: here)
        assert right.delivered
        assert wrong.error == "tls"
        assert len(receiver.got) == 1

    def test_a_certificate_that_nobody_trusts_is_refused(self, tmp_path: Path) -> None:
        context, _ = certified(tmp_path, "127.0.0.1")
        with receiving(tls=context) as receiver:
            assert sent(receiver.url).error == "tls"
        assert receiver.got == []

    def test_plain_http_is_refused_where_it_is_not_allowed(self, receiver: Receiver) -> None:
        strict = Rules(LOOPBACK.networks, LOOPBACK.ports, plain_http=False)
        assert sent(receiver.url, allowed=strict).error == "plainHttp"
        assert receiver.got == []
