"""The people of a customer, and how they come and go."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import IntegrityError, connection, transaction
from django.test import Client

from portal.accounts.errors import AddressTaken, LastAdmin
from portal.accounts.invitations import (
    SEND_INVITATION,
    accept_as_new,
    invitation_path,
    invitation_send,
    invitations_resend,
    invite,
)
from portal.accounts.models import Customer, Invitation, Membership, User
from portal.accounts.people import account_close, member_remove, noc_role_change, role_change
from portal.core import clock
from tests.integration.accounts.test_sign_in import PASSWORD
from tests.integration.isp import member
from tests.integration.requested_tasks import requested
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def invitation(ada: User, dairy: Customer) -> Invitation:
    return invite(by=ada, customer=dairy, email="dora@dairy.example", role="operator", now=clock.now())


def accept(client: Client, invitation: Invitation, **form: str) -> Any:
    return client.post(invitation_path(invitation), form)


class TestWhoInvitedIsGone:
    """An invitation in a customer's name ends with its maker's right to invite."""

    @pytest.fixture
    def eve(self, dairy: Customer) -> User:
        return member("eve", dairy, Membership.Role.ADMIN)

    @pytest.fixture
    def offered(self, eve: User, dairy: Customer) -> Invitation:
        return invite(by=eve, customer=dairy, email="mallory@dairy.example", role="admin", now=clock.now())

    def is_open(self, offered: Invitation) -> bool:
        return Client().get(invitation_path(offered)).status_code == 200

    def test_a_removed_member_s_invitations_end(
        self, ada: User, eve: User, dairy: Customer, offered: Invitation, invitation: Invitation
    ) -> None:
        assert self.is_open(offered)
        eves = Membership.objects.get(user=eve)
        remove = f"/team/{dairy.pk}/members/{eves.pk}/remove/"
        assert signed_in(ada, reauthenticated=True).post(remove).status_code == 302
        assert not self.is_open(offered)
        assert self.is_open(invitation), "Ada is still an admin"

    def test_so_they_do_with_a_role_that_invites_nobody(
        self, ada: User, eve: User, offered: Invitation
    ) -> None:
        role_change(membership=Membership.objects.get(user=eve), role="admin", now=clock.now())
        assert self.is_open(offered)
        role_change(membership=Membership.objects.get(user=eve), role="operator", now=clock.now())
        assert not self.is_open(offered)

    def test_so_they_do_with_a_closed_account(self, ada: User, eve: User, offered: Invitation) -> None:
        account_close(person=eve, now=clock.now())
        assert not self.is_open(offered)

    def test_so_do_a_noc_admin_s_where_they_were_no_admin_themselves(
        self, nina: User, dairy: Customer
    ) -> None:
        other = User.objects.create_user("olga", email="olga@isp.example", noc_role="nocAdmin")
        sent = invite(by=other, customer=dairy, email="m@dairy.example", role="viewer", now=clock.now())
        noc_role_change(person=other, role="noc", now=clock.now())
        assert not self.is_open(sent)

    def test_another_customer_s_stay(self, eve: User, ada: User, offered: Invitation) -> None:
        bakery = Customer.objects.create(name="Bakery", created_at=clock.now())
        Membership.objects.create(user=eve, customer=bakery, role="admin")
        elsewhere = invite(by=eve, customer=bakery, email="x@bakery.example", role="viewer", now=clock.now())
        member_remove(membership=Membership.objects.get(user=eve, customer=offered.customer), now=clock.now())
        assert self.is_open(elsewhere)
        assert not self.is_open(offered)


class TestInviting:
    def test_ada_invites_and_the_mail_goes_out_through_the_outbox(self, ada: User, dairy: Customer) -> None:
        answer = signed_in(ada, reauthenticated=True).post(
            f"/team/{dairy.pk}/invite/", {"email": "dora@dairy.example", "role": "viewer"}
        )
        assert answer["Location"] == f"/team/{dairy.pk}/"
        assert mail.outbox == []
        [(_, [number])] = requested(SEND_INVITATION)
        invitation_send(invitation_id=number, now=clock.now())
        assert mail.outbox[0].to == ["dora@dairy.example"]
        assert invitation_path(Invitation.objects.get()) in mail.outbox[0].body

    @pytest.mark.parametrize("who", ["alice", "bob"])
    def test_operators_and_viewers_see_the_team_but_do_not_invite(
        self, who: str, dairy: Customer, request: pytest.FixtureRequest
    ) -> None:
        client = signed_in(request.getfixturevalue(who))
        page = client.get(f"/team/{dairy.pk}/")
        assert page.status_code == 200
        assert "Invite somebody" not in text(page)
        assert client.post(f"/team/{dairy.pk}/invite/", {}).status_code == 403

    def test_the_same_address_is_not_invited_twice(self, ada: User, invitation: Invitation) -> None:
        again = {"email": "Dora@dairy.example", "role": "viewer"}
        answer = signed_in(ada, reauthenticated=True).post(f"/team/{invitation.customer_id}/invite/", again)
        assert answer.status_code == 422
        assert "has an open invitation" in text(answer)

    def test_an_address_can_be_invited_again_after_the_first_invitation_expired(
        self, ada: User, dairy: Customer, invitation: Invitation
    ) -> None:
        later = clock.now() + timedelta(days=8)
        assert invite(by=ada, customer=dairy, email="dora@dairy.example", role="viewer", now=later).pk

    def test_a_mail_is_sent_once_and_again_when_the_server_was_down(
        self, invitation: Invitation, settings: Any
    ) -> None:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
        with pytest.raises(OSError):
            invitation_send(invitation_id=invitation.pk, now=clock.now())
        settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
        later = clock.now() + timedelta(minutes=2)
        assert invitations_resend(now=later) == [invitation.pk]
        for _ in range(2):
            invitation_send(invitation_id=invitation.pk, now=later)
        assert len(mail.outbox) == 1
        assert invitations_resend(now=later + timedelta(minutes=2)) == []

    def test_a_customers_name_stays_a_name_in_the_mail(self, ada: User, dairy: Customer) -> None:
        Customer.objects.filter(pk=dairy.pk).update(name="Dairy\r\nBcc: eve@evil.example")
        dairy.refresh_from_db()
        made = invite(by=ada, customer=dairy, email="dora@dairy.example", role="viewer", now=clock.now())
        invitation_send(invitation_id=made.pk, now=clock.now())
        assert mail.outbox[0].recipients() == ["dora@dairy.example"]
        assert "\n" not in mail.outbox[0].subject


class TestAccepting:
    def test_somebody_new_chooses_a_name_and_is_in(self, invitation: Invitation) -> None:
        client = Client()
        answer = accept(client, invitation, username="dora", password="battery horse staple")
        assert answer["Location"] == "/"
        joined = Membership.objects.get(user__username="dora")
        assert (joined.customer, joined.role) == (invitation.customer, "operator")
        assert client.get("/").status_code == 200

    def test_a_link_works_once(self, invitation: Invitation) -> None:
        accept(Client(), invitation, username="dora", password="battery horse staple")
        assert (
            accept(Client(), invitation, username="eve", password="battery horse staple").status_code == 410
        )
        assert not User.objects.filter(username="eve").exists()

    def test_a_link_that_was_tampered_with_is_worthless(self, invitation: Invitation) -> None:
        assert Client().get(invitation_path(invitation)[:-2] + "/").status_code == 410

    def test_an_expired_or_revoked_link_is_worthless(self, ada: User, invitation: Invitation) -> None:
        signed_in(ada).post(f"/team/{invitation.customer_id}/invitations/{invitation.pk}/revoke/")
        assert Client().get(invitation_path(invitation)).status_code == 410
        Invitation.objects.update(
            revoked_at=None,
            created_at=clock.now() - timedelta(days=9),
            expires_at=clock.now() - timedelta(days=2),
        )
        assert Client().get(invitation_path(invitation)).status_code == 410

    def test_a_weak_password_is_refused_and_the_link_stays_good(self, invitation: Invitation) -> None:
        assert accept(Client(), invitation, username="dora", password="short").status_code == 422
        assert (
            accept(Client(), invitation, username="alicent", password="battery horse staple").status_code
            == 302
        )

    def test_a_taken_name_leaves_the_link_good(self, alice: User, invitation: Invitation) -> None:
        assert (
            accept(Client(), invitation, username="alice", password="battery horse staple").status_code == 422
        )
        assert (
            accept(Client(), invitation, username="dora", password="battery horse staple").status_code == 302
        )

    def test_a_name_in_other_case_is_taken_and_locks_nobody_out(
        self, alice: User, invitation: Invitation
    ) -> None:
        """Sign-in does not mind the case, and finds nobody where two would do."""
        refused = accept(Client(), invitation, username="Alice", password="battery horse staple")
        assert refused.status_code == 422
        assert "Alice is taken. Choose another name." in text(refused)
        with pytest.raises(IntegrityError, match="one_user_per_name"), transaction.atomic():
            User.objects.create_user("ALICE")
        assert Client().login(username="aLICE", password="correct horse battery")

    def test_an_address_that_was_taken_meanwhile_is_named(self, alice: User, invitation: Invitation) -> None:
        User.objects.filter(pk=alice.pk).update(email="Dora@dairy.example")
        with pytest.raises(AddressTaken):
            accept_as_new(username="dora", password="x", invitation=invitation, now=clock.now())

    def test_somebody_known_signs_in_first_and_then_joins(
        self, charlie: User, invitation: Invitation
    ) -> None:
        User.objects.filter(pk=charlie.pk).update(email="Dora@dairy.example")
        assert "Sign in to accept" in text(Client().get(invitation_path(invitation)))
        assert accept(signed_in(charlie), invitation).status_code == 302
        assert charlie.memberships.count() == 2

    def test_nobody_joins_with_somebody_elses_link(self, charlie: User, invitation: Invitation) -> None:
        assert accept(signed_in(charlie), invitation).status_code == 409
        assert charlie.memberships.count() == 1


class TestRoles:
    def of(self, user: User) -> Membership:
        return Membership.objects.select_related("customer").get(user=user)

    def test_ada_makes_bob_an_operator(self, ada: User, bob: User, dairy: Customer) -> None:
        place = f"/team/{dairy.pk}/members/{self.of(bob).pk}/role/"
        signed_in(ada, reauthenticated=True).post(place, {"role": "operator"})
        assert self.of(bob).role == "operator"

    @pytest.mark.parametrize("what", ["members/{}/role", "members/{}/remove", "invite"])
    def test_an_open_session_alone_gives_and_takes_no_access(
        self, ada: User, bob: User, dairy: Customer, what: str
    ) -> None:
        form = {"role": "admin", "email": "mallory@dairy.example"}
        client = signed_in(ada)
        answer = client.post(f"/team/{dairy.pk}/{what.format(self.of(bob).pk)}/", form)
        assert answer["Location"].startswith("/login/again/?next=")
        assert self.of(bob).role == "viewer"
        assert not Invitation.objects.exists()
        client.post(answer["Location"], {"password": PASSWORD})
        is_done = {
            "members/{}/role": lambda: self.of(bob).role == "admin",
            "members/{}/remove": lambda: not bob.memberships.exists(),
            "invite": lambda: Invitation.objects.get().role == "admin",
        }
        assert is_done[what](), "it goes on after the password"

    def test_ada_removes_bob(self, ada: User, bob: User, dairy: Customer) -> None:
        signed_in(ada, reauthenticated=True).post(f"/team/{dairy.pk}/members/{self.of(bob).pk}/remove/")
        assert not bob.memberships.exists()

    def test_the_last_admin_stays_an_admin(self, ada: User) -> None:
        with pytest.raises(LastAdmin):
            role_change(membership=self.of(ada), role="viewer", now=clock.now())
        with pytest.raises(LastAdmin):
            member_remove(membership=self.of(ada), now=clock.now())

    def test_alice_changes_nobodys_role(self, ada: User, alice: User, bob: User, dairy: Customer) -> None:
        for what in ("role", "remove"):
            place = f"/team/{dairy.pk}/members/{self.of(bob).pk}/{what}/"
            assert signed_in(alice).post(place, {"role": "admin"}).status_code == 403


@pytest.mark.django_db(transaction=True)
def test_two_admins_who_remove_each_other_leave_one(dairy: Customer) -> None:
    admins = [member(name, dairy, "admin").memberships.get() for name in ("ada", "adam")]
    start = threading.Barrier(2)

    def remove(one: Membership) -> None:
        start.wait()
        try:
            member_remove(membership=one, now=clock.now())
        except LastAdmin:
            pass
        finally:
            connection.close()

    threads = [threading.Thread(target=remove, args=(one,)) for one in admins]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Membership.objects.filter(customer=dairy, role="admin").count() == 1
