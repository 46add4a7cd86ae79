"""Lines that share a cause are one mail to each reader, with the lines that are his."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.events.announcements import announce
from portal.events.models import Event
from portal.inventory.models import ObservedInterface, ObservedRouter, RouterSilence
from portal.notifications.event_fanout import events_fan_out
from portal.notifications.mail_delivery import mail_send, mails_forget
from portal.notifications.mail_recipients import mails_stop, unsubscribe_path
from portal.notifications.models import Mail, MailLine
from portal.telemetry.oper_status import Turn, statuses_write
from portal.telemetry.router_silences import REPORTING, SILENT
from portal.vll.models import TunnelPath, Vll, VllEnd
from portal.vll.operations.state_compare_and_swap import sync_move
from portal.vll.states import OperStatus
from tests.integration.accounts.test_mails import Reader, parts
from tests.integration.isp import Isp
from tests.integration.notifications.mail_server import MailServer
from tests.integration.orders import end, order
from tests.integration.router_answers import activate, answer

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
VLANS = range(100, 106)


@pytest.fixture
def nora(nora: User) -> User:
    User.objects.filter(pk=nora.pk).update(email="nora@isp.example")
    nora.refresh_from_db()
    return nora


@pytest.fixture
def lines(isp: Isp, alice: User, nora: User) -> list[Vll]:
    """Six lines of the dairy between Rhino and Hippo, up and without pending notifications."""
    made = []
    for vlan in VLANS:
        ends = {
            f"{side}_end": end(isp, f"{router}:host-cust1", outer=vlan)
            for router, side in (("rhino", "a"), ("hippo", "z"))
        }
        vll = order(isp, alice, description=f"line {vlan}", cir_bps=10**8, **ends).vll
        activate(vll)
        made.append(vll)
    Vll.objects.update(oper_status=OperStatus.UP)
    VllEnd.objects.update(link_up=True, reachable=True, observed_in_sync=True)
    Event.objects.update(pending_notification=False)
    return made


def send_all(*, after: timedelta) -> None:
    """The work of the beat and the workers, once, at a time to come."""
    events_fan_out(now=clock.now())
    due = Mail.objects.filter(next_try_at__lte=clock.now() + after).order_by("pk")
    for pk in due.values_list("pk", flat=True):
        mail_send(mail_id=pk, now=clock.now() + after)


def mailed(server: MailServer) -> list[tuple[str, str]]:
    found = [
        (to[0].partition("@")[0], message["Subject"].removeprefix("[Longline] "))
        for to, message in zip(server.to, server.took, strict=True)
    ]
    server.to.clear()
    server.took.clear()
    return sorted(found)


def turn(lines: list[Vll], status: OperStatus) -> None:
    for line in lines:
        statuses_write([Turn(line.pk, status, clock.now())])


def silent(isp: Isp) -> RouterSilence:
    since = clock.now()
    announce(SILENT, now=since, router_id=isp.routers["hippo"].pk)
    return RouterSilence.objects.create(router=isp.routers["hippo"], since=since)


class TestBlackHole:
    def path(self, isp: Isp) -> TunnelPath:
        return TunnelPath.objects.create(
            a_router=isp.routers["rhino"],
            z_router=isp.routers["hippo"],
            family=4,
            needed_ip_mtu=9000,
            verified_ip_mtu=8000,
            verified_at=clock.now(),
            black_hole_since=clock.now(),
            round_trips_due_at=clock.now(),
        )

    def happens(self, kind: str, lines: list[Vll], path: TunnelPath) -> None:
        for line in lines:
            data = {"path": str(path.pk)}
            announce(kind, now=clock.now(), customer_id=line.customer_id, vll_id=line.pk, data=data)

    def test_the_lines_of_a_path_are_one_mail_with_what_passes(
        self, isp: Isp, server: MailServer, lines: list[Vll]
    ) -> None:
        self.happens("vll.black_hole", lines, self.path(isp))
        send_all(after=3 * MINUTE)
        for message in server.took:
            assert (
                "MTU black hole between rhino and hippo over IPv4: packets of 9,000 bytes are lost, and the"
                " largest that passes has 8,000."
            ) in " ".join(parts(message)[0].split())
            assert all(f"line {vlan} (Alpine Dairy)" in parts(message)[0] for vlan in VLANS)
        assert mailed(server) == [(name, "Large frames are lost: 6 lines") for name in ("alice", "nora")]

    def test_what_is_gone_before_it_is_mailed_is_not(
        self, isp: Isp, server: MailServer, lines: list[Vll]
    ) -> None:
        path = self.path(isp)
        self.happens("vll.black_hole", lines, path)
        self.happens("vll.black_hole_gone", lines[1:], path)
        send_all(after=3 * MINUTE)
        assert mailed(server) == [(name, "Large frames are lost: line 100") for name in ("alice", "nora")]


class TestDrift:
    def test_a_router_without_a_vpp_is_one_mail_to_each_of_the_staff(
        self, server: MailServer, lines: list[Vll]
    ) -> None:
        for line in lines:
            answer(line, "z", "pending", reason={"code": "vpp_unavailable"})
        send_all(after=3 * MINUTE)
        (message,) = server.took
        assert "VPP is not working on hippo." in parts(message)[0]
        assert all(f"line {vlan} (Alpine Dairy)" in parts(message)[0] for vlan in VLANS)
        assert mailed(server) == [("nora", "Configuration drift: 6 lines")]

    def test_what_somebody_else_writes_is_one_mail_for_its_router(
        self, server: MailServer, lines: list[Vll]
    ) -> None:
        VllEnd.objects.filter(vll__in=lines[:4], side="a").update(observed_in_sync=False)
        VllEnd.objects.filter(vll__in=lines[4:], side="z").update(observed_in_sync=False)
        for line in lines:
            sync_move(line.pk, False, now=clock.now())
        send_all(after=3 * MINUTE)
        assert mailed(server) == [
            ("nora", "Configuration drift: 2 lines"),
            ("nora", "Configuration drift: 4 lines"),
        ]

    def test_what_follows_of_the_same_cause_is_a_digest_an_hour_later(
        self, server: MailServer, lines: list[Vll]
    ) -> None:
        VllEnd.objects.filter(side="a").update(observed_in_sync=False)
        sync_move(lines[0].pk, False, now=clock.now())
        send_all(after=3 * MINUTE)
        assert mailed(server) == [("nora", "Configuration drift: line 100")]
        for line in lines[1:]:
            sync_move(line.pk, False, now=clock.now())
            send_all(after=30 * MINUTE)
        assert mailed(server) == []
        send_all(after=64 * MINUTE)
        assert mailed(server) == [("nora", "Configuration drift: 5 lines")]

    def test_what_was_repaired_meanwhile_is_not_named(self, server: MailServer, lines: list[Vll]) -> None:
        for line in lines[:3]:
            sync_move(line.pk, False, now=clock.now())
        for line in lines[1:3]:
            sync_move(line.pk, True, now=clock.now())
        send_all(after=3 * MINUTE)
        assert mailed(server) == [("nora", "Configuration drift: line 100")]


class TestStatus:
    def test_lines_of_one_port_share_a_mail_when_down_and_when_up(
        self, server: MailServer, lines: list[Vll]
    ) -> None:
        VllEnd.objects.filter(side="z").update(link_up=False)
        turn(lines, OperStatus.DOWN)
        send_all(after=3 * MINUTE)
        (message,) = server.took
        assert "The port hippo:host-cust1 has no link." in parts(message)[0]
        assert mailed(server) == [("alice", "Down: 6 lines")]
        turn(lines[1:], OperStatus.UP)
        send_all(after=3 * MINUTE)
        assert mailed(server) == [("alice", "Up again: 5 lines")]
        turn(lines[:1], OperStatus.UP)
        send_all(after=30 * MINUTE)
        assert mailed(server) == [("alice", "Up again: line 100")]

    def test_lines_that_flap_among_others_are_not_named(self, server: MailServer, lines: list[Vll]) -> None:
        turn(lines, OperStatus.DOWN)
        turn(lines[2:], OperStatus.UP)
        send_all(after=3 * MINUTE)
        assert mailed(server) == [("alice", "Down: 2 lines")]
        turn(lines[:2], OperStatus.UP)
        send_all(after=30 * MINUTE)
        assert mailed(server) == [("alice", "Up again: 2 lines")]

    @pytest.mark.parametrize(
        ("cause", "sentence"),
        [
            pytest.param(
                lambda isp: ObservedRouter.objects.filter(router=isp.routers["hippo"]).update(
                    vpp_absent=True
                ),
                "VPP is not working on hippo.",
                id="a router without a VPP",
            ),
            pytest.param(
                lambda _: VllEnd.objects.filter(side="a").update(reachable=False),
                "There is no route between hippo – rhino.",
                id="a route",
            ),
            pytest.param(
                lambda isp: (
                    VllEnd.objects.filter(side="a").update(reachable=False),
                    ObservedInterface.objects.filter(router=isp.routers["hippo"], name="bb-prev").update(
                        link_up=False
                    ),
                ),
                "The link rhino:bb-next",
                id="a link",
            ),
        ],
    )
    def test_the_mail_names_the_cause(
        self, server: MailServer, isp: Isp, lines: list[Vll], cause: Callable[[Isp], object], sentence: str
    ) -> None:
        cause(isp)
        turn(lines, OperStatus.DOWN)
        send_all(after=3 * MINUTE)
        (message,) = server.took
        plain, html = parts(message)
        assert f"Reason: {sentence}" in plain
        assert [word for word in Reader(html).words if word != "Longline"] == plain.split()

    def test_each_reader_gets_only_the_own_lines(
        self, server: MailServer, lines: list[Vll], charlie: User, bakery: Customer
    ) -> None:
        User.objects.filter(pk=charlie.pk).update(email="charlie@bakery.example")
        Vll.objects.filter(pk__in=[line.pk for line in lines[:2]]).update(customer=bakery)
        turn(lines, OperStatus.DOWN)
        send_all(after=3 * MINUTE)
        for to, message in zip(server.to, server.took, strict=True):
            theirs = VLANS[2:] if to == ["alice@dairy.example"] else VLANS[:2]
            assert [vlan for vlan in VLANS if f"line {vlan}" in parts(message)[0]] == list(theirs)
        assert mailed(server) == [("alice", "Down: 4 lines"), ("charlie", "Down: 2 lines")]

    def test_a_user_who_left_or_unsubscribed_meanwhile_gets_no_mail(
        self, server: MailServer, lines: list[Vll], alice: User, ada: User
    ) -> None:
        User.objects.filter(pk=ada.pk).update(email="ada@dairy.example")
        turn(lines, OperStatus.DOWN)
        events_fan_out(now=clock.now())
        alice.memberships.all().delete()
        mails_stop(user=ada, group="status", now=clock.now())
        send_all(after=3 * MINUTE)
        assert mailed(server) == []
        assert set(Mail.objects.filter(kind="vll.op-down").values_list("state", flat=True)) == {"dropped"}

    def test_a_mail_about_many_lines_can_be_unsubscribed_from(
        self, server: MailServer, lines: list[Vll], alice: User
    ) -> None:
        turn(lines, OperStatus.DOWN)
        send_all(after=3 * MINUTE)
        (message,) = server.took
        path = unsubscribe_path(alice, "status")
        assert message["List-Unsubscribe"].strip() == f"<https://portal.example.net{path}>"
        assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"

    def test_the_last_mailed_status_of_each_line_outlives_the_log(
        self, server: MailServer, lines: list[Vll]
    ) -> None:
        turn(lines, OperStatus.DOWN)
        send_all(after=3 * MINUTE)
        mails_forget(before=clock.now() + timedelta(days=30))
        assert MailLine.objects.filter(mail__user__username="alice", status="down").count() == 6


class TestSilentRouters:
    def test_it_is_one_mail_after_two_minutes_and_one_when_it_is_back(
        self, server: MailServer, isp: Isp, lines: list[Vll]
    ) -> None:
        silence = silent(isp)
        send_all(after=MINUTE)
        assert mailed(server) == []
        send_all(after=2 * MINUTE)
        for to, message in zip(server.to, server.took, strict=True):
            plain, html = parts(message)
            assert "hippo has not answered for two minutes. These lines may be down:" in plain
            assert all(f"line {vlan} (Alpine Dairy)" in plain for vlan in VLANS)
            assert [word for word in Reader(html).words if word != "Longline"] == plain.split()
            assert to in (["alice@dairy.example"], ["nora@isp.example"])
        assert mailed(server) == [("alice", "hippo does not answer"), ("nora", "hippo does not answer")]
        # Ten minutes later its lines count as down: that was said.
        turn(lines, OperStatus.DOWN)
        send_all(after=13 * MINUTE)
        assert mailed(server) == []
        RouterSilence.objects.filter(pk=silence.pk).update(until=clock.now())
        announce(REPORTING, now=clock.now(), router_id=isp.routers["hippo"].pk)
        turn(lines[1:], OperStatus.UP)
        send_all(after=16 * MINUTE)
        for message in server.took:
            plain = parts(message)[0]
            assert "line 100 (Alpine Dairy): not up" in plain
            assert "line 101 (Alpine Dairy): up" in plain
        assert mailed(server) == [("alice", "hippo answers again"), ("nora", "hippo answers again")]
        turn(lines[:1], OperStatus.UP)
        send_all(after=40 * MINUTE)
        assert mailed(server) == [("alice", "Up again: line 100")]

    def test_one_that_is_back_within_two_minutes_mails_nobody(
        self, server: MailServer, isp: Isp, lines: list[Vll]
    ) -> None:
        silence = silent(isp)
        RouterSilence.objects.filter(pk=silence.pk).update(until=clock.now())
        announce(REPORTING, now=clock.now(), router_id=isp.routers["hippo"].pk)
        send_all(after=5 * MINUTE)
        assert mailed(server) == []

    def test_customers_without_a_line_there_hear_nothing(
        self, server: MailServer, isp: Isp, lines: list[Vll], charlie: User
    ) -> None:
        User.objects.filter(pk=charlie.pk).update(email="charlie@bakery.example")
        silent(isp)
        send_all(after=3 * MINUTE)
        assert mailed(server) == [("alice", "hippo does not answer"), ("nora", "hippo does not answer")]

    def test_an_outage_that_the_living_end_sees_is_still_reported(
        self, server: MailServer, isp: Isp, lines: list[Vll]
    ) -> None:
        announce(SILENT, now=clock.now(), router_id=isp.routers["hippo"].pk)
        silence = RouterSilence.objects.create(router=isp.routers["hippo"], since=clock.now())
        send_all(after=2 * MINUTE)
        mailed(server)
        RouterSilence.objects.filter(pk=silence.pk).update(until=clock.now())
        VllEnd.objects.filter(side="a").update(link_up=False)
        turn(lines, OperStatus.DOWN)
        send_all(after=5 * MINUTE)
        assert mailed(server) == [("alice", "Down: 6 lines")]
