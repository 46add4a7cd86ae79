"""NOC staff join, change roles, leave and return on the NOC's pages."""

import re
import threading
from collections.abc import Callable
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.core import mail
from django.db import connection
from django.test import Client
from rest_framework.test import APIClient

from portal.accounts.errors import AccountClosed, LastAdmin, LastNocAdmin, NoAddress
from portal.accounts.models import ApiToken, Customer, User
from portal.accounts.own_account import ACCOUNT_OPENED
from portal.accounts.people import account_close, account_reopen, customer_retire, noc_role_change
from portal.accounts.tokens import token_create
from portal.core import clock
from portal.events.models import Event
from tests.integration.accounts.codes import with_totp
from tests.integration.accounts.test_sign_in import PASSWORD, sign_in
from tests.integration.isp import member
from tests.integration.notifications.test_mails import send_all
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
NEW_PASSWORD = "battery horse staple"


def press(user: User, person: User | None, what: str, **form: str) -> Any:
    """Press a button of the staff page or of a person's page; return the page that follows.

    The user has entered the password a moment ago.
    """
    place = f"/noc/people/{person.pk}/{what}/" if person else f"/noc/staff/{what}/"
    client = signed_in(user)
    client.post("/login/again/", {"password": PASSWORD})
    return client.post(place, form, follow=True)


def mailed_link() -> str:
    """Return the link in the only mail that was sent."""
    assert Event.objects.filter(kind=ACCOUNT_OPENED).count() == 1
    send_all()
    found = re.search(r"https?://[^/\s]+(/password/new/\S+/)", str(mail.outbox[-1].body))
    assert found is not None
    return found[1]


def choose_password(link: str) -> None:
    browser = Client()
    form = browser.get(link)["Location"]
    assert browser.post(form, {"password1": NEW_PASSWORD, "password2": NEW_PASSWORD}).status_code == 302


class TestAdding:
    def test_new_staff_member_gets_a_link_by_mail_and_signs_in(self, nina: User) -> None:
        answer = press(nina, None, "add", username="nora", email="nora@isp.example", role="noc")
        assert "nora is NOC staff now." in text(answer)
        choose_password(mailed_link())
        assert mail.outbox[0].to == ["nora@isp.example"]
        client = Client()
        sign_in(client, "nora", NEW_PASSWORD)
        assert client.get("/noc/").status_code == 200
        assert User.objects.get(username="nora").noc_role == "noc"

    def test_sign_in_needs_a_chosen_password(self, nina: User) -> None:
        press(nina, None, "add", username="nora", email="nora@isp.example", role="noc")
        client = Client()
        sign_in(client, "nora", "")
        assert client.get("/").status_code == 302

    def test_existing_account_gets_the_role_by_name_and_address(self, nina: User, alice: User) -> None:
        User.objects.filter(pk=alice.pk).update(email="alice@isp.example")
        press(nina, None, "add", username="Alice", email="Alice@isp.example", role="nocAdmin")
        alice.refresh_from_db()
        assert (alice.noc_role, alice.check_password(PASSWORD)) == ("nocAdmin", True)
        assert not Event.objects.filter(kind=ACCOUNT_OPENED).exists()

    @pytest.mark.parametrize(
        ("username", "email", "why"),
        [
            ("ALICE", "other@isp.example", "ALICE is taken."),
            ("dora", "Alice@isp.example", "Alice@isp.example already belongs to an account."),
            ("do ra", "dora@isp.example", "Enter a valid username."),
        ],
    )
    def test_mistyped_name_or_address_grants_no_role(
        self, nina: User, alice: User, username: str, email: str, why: str
    ) -> None:
        User.objects.filter(pk=alice.pk).update(email="alice@isp.example")
        answer = press(nina, None, "add", username=username, email=email, role="noc")
        assert answer.status_code == 422
        assert why in text(answer)
        assert list(User.objects.exclude(noc_role="none")) == [nina]


class TestRoles:
    def test_admin_changes_roles_and_staff_cannot(self, nina: User, nora: User) -> None:
        for role in ("nocAdmin", "noc", "none"):
            press(nina, nora, "role", role=role)
            nora.refresh_from_db()
            assert nora.noc_role == role

    def test_last_noc_admin_stays(self, nina: User, nora: User) -> None:
        closed = User.objects.create_user("noel", noc_role="nocAdmin", is_active=False)
        for what, form in (("role", {"role": "noc"}), ("role", {"role": "none"}), ("close", {})):
            assert "nina is the NOC's last admin." in text(press(nina, nina, what, **form))
        nina.refresh_from_db()
        assert (nina.noc_role, nina.is_active, closed.is_active) == ("nocAdmin", True, False)

    def test_closed_account_gets_no_role(self, nina: User, nora: User) -> None:
        account_close(person=nora, now=clock.now())
        with pytest.raises(AccountClosed):
            noc_role_change(person=nora, role="nocAdmin", now=clock.now())

    def test_existing_tokens_do_not_get_new_rights(self, nina: User, nora: User, alice: User) -> None:
        def live(user: User) -> list[str]:
            found = ApiToken.objects.filter(user=user, revoked_at__isnull=True)
            return sorted(found.values_list("name", flat=True))

        for user in (nora, alice):
            token_create(user=user, name="orders", scopes=["read", "order"], now=clock.now())
            maker, _ = token_create(user=user, name="maker", scopes=["order"], now=clock.now())
            token_create(user=user, name="made", scopes=["order"], made_with=maker, now=clock.now())
            # A token that the user made as NOC staff at an earlier time.
            ApiToken.objects.filter(pk=maker.pk).update(scopes=["order", "noc"])
        User.objects.filter(pk=alice.pk).update(email="alice@isp.example")
        press(nina, None, "add", username="alice", email="alice@isp.example", role="noc")
        assert live(alice) == ["orders"]
        for role in ("noc", "none"):
            press(nina, nora, "role", role=role)
            assert live(nora) == ["made", "maker", "orders"]
        press(nina, nora, "role", role="noc")
        assert live(nora) == ["orders"]
        token_create(user=User.objects.get(pk=nora.pk), name="noc", scopes=["noc"], now=clock.now())
        press(nina, nora, "role", role="nocAdmin")
        assert live(nora) == ["orders"]

    def test_unknown_role_changes_nothing(self, nina: User, nora: User) -> None:
        press(nina, nora, "role", role="root")
        nora.refresh_from_db()
        assert nora.noc_role == "noc"


class TestClosing:
    def test_sessions_tokens_and_password_end_immediately(self, nina: User, nora: User) -> None:
        browser = Client()
        sign_in(browser, "nora")
        token, plain = token_create(user=nora, name="hers", now=clock.now())
        program = APIClient(headers={"Authorization": f"Bearer {plain}"})
        assert [browser.get("/noc/").status_code, program.get("/api/v1/routers").status_code] == [200, 200]
        assert "The account is closed." in text(press(nina, nora, "close"))
        assert [browser.get("/noc/").status_code, program.get("/api/v1/routers").status_code] == [302, 401]
        nora.refresh_from_db()
        token.refresh_from_db()
        assert (nora.is_active, nora.has_usable_password()) == (False, False)
        assert token.revoked_at is not None

    def test_reopened_account_needs_a_new_password(self, nina: User, nora: User) -> None:
        User.objects.filter(pk=nora.pk).update(email="nora@isp.example")
        browser = Client()
        sign_in(browser, "nora")
        token_create(user=nora, name="hers", now=clock.now())
        press(nina, nora, "close")
        # A token whose creation was under way during the closure.
        ApiToken.objects.update(revoked_at=None)
        assert "The account is open." in text(press(nina, nora, "reopen"))
        assert browser.get("/noc/").status_code == 302
        assert not ApiToken.objects.filter(revoked_at__isnull=True).exists()
        again = Client()
        sign_in(again, "nora")
        assert again.get("/noc/").status_code == 302
        choose_password(mailed_link())
        sign_in(again, "nora", NEW_PASSWORD)
        assert again.get("/noc/").status_code == 200

    def test_account_closed_with_its_customer_needs_a_new_password(
        self, nina: User, alice: User, dairy: Customer
    ) -> None:
        User.objects.filter(pk=alice.pk).update(email="alice@dairy.example")
        browser = Client()
        sign_in(browser, "alice")
        customer_retire(customer=dairy, now=clock.now())
        assert "The account is open." in text(press(nina, alice, "reopen"))
        assert browser.get("/").status_code == 302
        again = Client()
        sign_in(again, "alice")
        assert again.get("/").status_code == 302
        choose_password(mailed_link())
        sign_in(again, "alice", NEW_PASSWORD)
        assert again.get("/").status_code == 200

    def test_reopening_an_open_account_changes_nothing(self, nina: User, nora: User) -> None:
        User.objects.filter(pk=nora.pk).update(email="nora@isp.example")
        nora.refresh_from_db()
        token_create(user=nora, name="hers", now=clock.now())
        account_reopen(person=nora, now=clock.now())
        assert ApiToken.objects.get().revoked_at is None
        assert not Event.objects.filter(kind=ACCOUNT_OPENED).exists()

    def test_account_without_an_address_cannot_be_reopened(self, nina: User, nora: User) -> None:
        account_close(person=nora, now=clock.now())
        with pytest.raises(NoAddress):
            account_reopen(person=nora, now=clock.now())

    def test_account_closed_with_its_customer_stays_closed(
        self, nina: User, alice: User, dairy: Customer
    ) -> None:
        User.objects.filter(pk=alice.pk).update(is_active=False, closed_with=dairy)
        assert "with Alpine Dairy" in text(signed_in(nina).get(f"/noc/people/{alice.pk}/"))
        press(nina, alice, "close")
        alice.refresh_from_db()
        assert (alice.is_active, alice.closed_with) == (False, None)

    def test_last_admin_of_a_customer_cannot_be_closed(self, nina: User, ada: User, dairy: Customer) -> None:
        with pytest.raises(LastAdmin):
            account_close(person=ada, now=clock.now())
        member("adam", dairy, "admin")
        account_close(person=ada, now=clock.now())
        ada.refresh_from_db()
        assert not ada.is_active


class TestSecondFactor:
    def test_user_sets_up_a_new_second_factor_after_a_reset(
        self, nina: User, nora: User, settings: Any
    ) -> None:
        settings.LONGLINE_NOC_NEEDS_TOTP = True
        with_totp(nora)
        with_totp(nina)
        assert "The second factor and its recovery codes are gone" in text(press(nina, nora, "second-factor"))
        assert not Authenticator.objects.filter(user=nora).exists()
        assert Authenticator.objects.filter(user=nina).count() == 2
        client = Client()
        assert sign_in(client, "nora")["Location"] == "/"
        assert client.get("/noc/")["Location"] == "/account/security/totp/"

    def test_reset_needs_confirmation_and_the_admins_password(self, nina: User, nora: User) -> None:
        with_totp(nora)
        place, client = f"/noc/people/{nora.pk}/second-factor/", signed_in(nina)
        assert f'href="{place}"' in client.get(f"/noc/people/{nora.pk}/").content.decode()
        assert "Reset the second factor of nora?" in text(client.get(place))
        again = client.post(place)["Location"]
        assert again.startswith("/login/again/?next=")
        assert "Enter your password" in text(client.get(again))
        client.post(again, {"password": "wrong"})
        assert Authenticator.objects.filter(user=nora).count() == 2
        answer = client.post(again, {"password": PASSWORD}, follow=True)
        assert "The second factor and its recovery codes are gone" in text(answer)
        assert not Authenticator.objects.filter(user=nora).exists()

    @pytest.mark.parametrize(
        "place",
        ["people/{}/role", "people/{}/second-factor", "people/{}/close", "people/{}/reopen", "staff/add"],
    )
    def test_open_session_alone_grants_no_power(self, nina: User, nora: User, place: str) -> None:
        form = {"role": "nocAdmin", "username": "nora", "email": "nora@isp.example"}
        with_totp(nora)
        is_open = not place.endswith("reopen")
        User.objects.filter(pk=nora.pk).update(is_active=is_open)
        answer = signed_in(nina).post(f"/noc/{place.format(nora.pk)}/", form)
        assert answer["Location"].startswith("/login/again/?next=")
        nora.refresh_from_db()
        assert (nora.noc_role, nora.is_active) == ("noc", is_open)
        assert Authenticator.objects.filter(user=nora).count() == 2

    def test_reset_works_for_customers_users_too(self, nina: User, alice: User) -> None:
        with_totp(alice)
        press(nina, alice, "second-factor")
        client = Client()
        assert sign_in(client, "alice")["Location"] == "/"
        assert client.get("/").status_code == 200


class TestPages:
    def test_list_shows_name_and_role(self, nina: User, nora: User, alice: User) -> None:
        with_totp(nora)
        User.objects.create_user("noel", noc_role="noc", is_active=False)
        User.objects.filter(pk=nina.pk).update(last_login=clock.now())
        page = text(signed_in(nina).get("/noc/staff/"))
        for row in (
            r"nina – NOC admin [\d: -]+ UTC no Open",
            r"nora – NOC user never yes Open",
            "noel .* Closed",
        ):
            assert re.search(row, page), row
        assert "alice" not in page
        assert "Add somebody" in page

    def test_staff_read_the_list_and_change_nothing(self, nina: User, nora: User, alice: User) -> None:
        with_totp(alice)
        browser = signed_in(nora)
        assert "Add somebody" not in text(browser.get("/noc/staff/"))
        assert "Alpine Dairy" in text(browser.get(f"/noc/people/{alice.pk}/"))
        assert "Actions" not in text(browser.get(f"/noc/people/{alice.pk}/"))
        places = [f"people/{alice.pk}/{what}" for what in ("role", "close", "reopen", "second-factor")]
        for place in ("staff/add", *places):
            assert browser.post(f"/noc/{place}/", {"role": "nocAdmin"}).status_code == 403, place
        alice.refresh_from_db()
        assert (alice.noc_role, alice.is_active) == ("none", True)
        assert Authenticator.objects.filter(user=alice).exists()

    def test_audit_trail_names_the_admin(self, nina: User, nora: User) -> None:
        with_totp(nora)
        press(nina, nora, "second-factor")
        press(nina, nora, "role", role="nocAdmin")
        press(nina, nora, "close")
        trail = text(signed_in(nina).get(f"/noc/people/{nora.pk}/history/"))
        for said in (
            "Second factor deleted (totp) by nina",
            "noc_role noc → nocAdmin",
            "is_active yes → no",
        ):
            assert said in trail, said


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "leave",
    [
        lambda person: noc_role_change(person=person, role="noc", now=clock.now()),
        lambda person: account_close(person=person, now=clock.now()),
    ],
    ids=["demoted", "closed"],
)
def test_one_of_two_admins_who_leave_together_stays(leave: Callable[[User], None]) -> None:
    admins = [User.objects.create_user(name, noc_role="nocAdmin") for name in ("nina", "noel")]
    start, refused = threading.Barrier(2), []

    def go(one: User) -> None:
        start.wait()
        try:
            leave(one)
        except LastNocAdmin:
            refused.append(one)
        finally:
            connection.close()

    threads = [threading.Thread(target=go, args=(one,)) for one in admins]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 1
    assert list(User.objects.filter(noc_role="nocAdmin", is_active=True)) == refused
