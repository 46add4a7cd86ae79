"""Somebody whose account was closed with its customer is invited by another one."""

from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.test import Client

from portal.accounts.errors import AccountNotClosed
from portal.accounts.invitations import accept_reopening, invitation_path, invite, open_invitations
from portal.accounts.models import Customer, Invitation, Membership, User
from portal.accounts.people import customer_reopen, customer_retire
from portal.core import clock
from tests.integration.accounts.codes import code_of, with_totp
from tests.integration.api.test_api_v1 import client as api_client
from tests.integration.isp import member
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
OLD, NEW = "correct horse battery", "battery horse staple"


@pytest.fixture
def dora(dairy: Customer) -> User:
    dora = member("dora", dairy, "operator")
    User.objects.filter(pk=dora.pk).update(email="Dora@dairy.example")
    return User.objects.get(pk=dora.pk)


@pytest.fixture
def invitation(dora: User, dairy: Customer, charlie: User, bakery: Customer) -> Invitation:
    """To the bakery, after the dairy was retired."""
    customer_retire(customer=dairy, now=clock.now())
    return invite(by=charlie, customer=bakery, email="dora@dairy.example", role="viewer", now=clock.now())


def accept(invitation: Invitation, password: str = NEW) -> tuple[Client, Any]:
    client = Client()
    return client, client.post(invitation_path(invitation), {"password": password})


def sign_in(password: str) -> Client:
    client = Client()
    client.post("/login/", {"login": "dora", "password": password})
    return client


def is_in(client: Client) -> bool:
    return client.get("/").status_code == 200


def test_the_mailed_link_opens_the_account_again_with_a_new_password(
    dora: User, invitation: Invitation
) -> None:
    offered = text(Client().get(invitation_path(invitation)))
    assert "Your account dora was closed" in offered
    client, answer = accept(invitation)
    assert answer["Location"] == "/"
    assert "Welcome to Basel Bakery" in text(client.get("/"))
    assert (is_in(sign_in(OLD)), is_in(sign_in(NEW))) == (False, True)
    assert Membership.objects.get(user=dora, customer=invitation.customer).role == "viewer"
    assert Client().get(invitation_path(invitation)).status_code == 410


def test_what_opened_the_account_before_stays_ended(
    dora: User, dairy: Customer, charlie: User, bakery: Customer
) -> None:
    page, api = signed_in(dora), api_client(dora)
    customer_retire(customer=dairy, now=clock.now())
    accept(invite(by=charlie, customer=bakery, email=dora.email, role="viewer", now=clock.now()))
    assert User.objects.get(pk=dora.pk).is_active
    assert not is_in(page)
    assert api.get("/api/v1/vlls").status_code == 401


def test_a_second_factor_is_still_required(dora: User, invitation: Invitation) -> None:
    secret = with_totp(dora)
    client, answer = accept(invitation)
    assert answer["Location"].startswith("/login/second-factor/")
    assert not is_in(client)
    assert client.post("/login/second-factor/", {"code": code_of(secret)})["Location"] == "/"
    assert is_in(client)


@pytest.mark.parametrize("domain", ["da\u0131ry.example", "da\u0130ry.example"], ids=["ı", "İ"])
def test_an_address_that_only_looks_alike_opens_nobody_elses_account(
    dora: User, dairy: Customer, charlie: User, bakery: Customer, domain: str
) -> None:
    """PostgreSQL turns either letter into an I, and the owner of that domain would read the mail."""
    customer_retire(customer=dairy, now=clock.now())
    alike = invite(by=charlie, customer=bakery, email=f"dora@{domain}", role="viewer", now=clock.now())
    assert "Your account dora" not in text(Client().get(invitation_path(alike)))
    with pytest.raises(AccountNotClosed):
        accept_reopening(password=NEW, invitation=alike, now=clock.now())
    assert not User.objects.get(pk=dora.pk).is_active


def test_a_weak_password_is_refused_and_the_link_stays_good(dora: User, invitation: Invitation) -> None:
    assert accept(invitation, "short")[1].status_code == 422
    assert accept(invitation, "dora@dairy.example")[1].status_code == 422
    assert not User.objects.get(pk=dora.pk).is_active
    assert accept(invitation)[1].status_code == 302


def test_who_was_closed_for_another_reason_stays_out(dora: User, charlie: User, bakery: Customer) -> None:
    User.objects.filter(pk=dora.pk).update(is_active=False)
    invitation = invite(by=charlie, customer=bakery, email=dora.email, role="viewer", now=clock.now())
    assert "was closed by the network's operator" in text(Client().get(invitation_path(invitation)))
    accept(invitation)
    with pytest.raises(AccountNotClosed):
        accept_reopening(password=NEW, invitation=invitation, now=clock.now())
    assert not User.objects.get(pk=dora.pk).is_active
    assert authenticate(username="dora", password=NEW) is None
    assert open_invitations(clock.now()).filter(pk=invitation.pk).exists()


def test_an_account_that_was_opened_meanwhile_keeps_its_password(
    dora: User, dairy: Customer, invitation: Invitation
) -> None:
    customer_reopen(customer=dairy, now=clock.now())
    with pytest.raises(AccountNotClosed):
        accept_reopening(password=NEW, invitation=invitation, now=clock.now())
    assert "Sign in to accept" in text(accept(invitation)[1])
    assert authenticate(username="dora", password=OLD) == dora
    assert open_invitations(clock.now()).filter(pk=invitation.pk).exists()


def test_a_reopened_customer_gets_back_members_who_were_closed_with_another_one_later(
    dora: User, dairy: Customer, bakery: Customer
) -> None:
    Membership.objects.create(user=dora, customer=bakery, role="viewer")
    for customer in (dairy, bakery):
        customer_retire(customer=customer, now=clock.now())
    assert not User.objects.get(pk=dora.pk).is_active
    customer_reopen(customer=dairy, now=clock.now())
    assert User.objects.get(pk=dora.pk).is_active
