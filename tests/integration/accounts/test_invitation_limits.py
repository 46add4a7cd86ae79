"""A customer cannot mail an address, or the world, without end."""

from datetime import datetime, timedelta

import pytest
from django.db import transaction

from portal.accounts.errors import InvitedTooOften, TooManyInvitations
from portal.accounts.invitations import PER_ADDRESS, PER_CUSTOMER, WINDOW, invitation_revoke, invite
from portal.accounts.models import Customer, Invitation, User
from portal.core import clock
from tests.integration.database.test_lock_order import thread_of
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
VICTIM = "dora@dairy.example"


def sent(by: User, customer: Customer, count: int, *, now: datetime) -> None:
    """``count`` invitations of that many people."""
    Invitation.objects.bulk_create(
        Invitation(
            customer=customer,
            email=f"{number}@dairy.example",
            role="viewer",
            invited_by=by,
            created_at=now,
            expires_at=now + timedelta(days=7),
        )
        for number in range(count)
    )


def invited_and_withdrawn(by: User, customer: Customer, *, now: datetime) -> None:
    made = invite(by=by, customer=customer, email=VICTIM, role="viewer", now=now)
    invitation_revoke(invitation=made, now=now)


def pressed(by: User, customer: Customer, email: str) -> tuple[int, str]:
    answer = signed_in(by, reauthenticated=True).post(
        f"/team/{customer.pk}/invite/", {"email": email, "role": "viewer"}
    )
    return answer.status_code, text(answer)


def test_an_address_is_invited_a_few_times_a_day_however_it_is_written(ada: User, dairy: Customer) -> None:
    now = clock.now()
    for minute in range(PER_ADDRESS):
        invited_and_withdrawn(ada, dairy, now=now + timedelta(minutes=minute))
    again_at = now + WINDOW
    with pytest.raises(InvitedTooOften) as refused:
        invite(
            by=ada, customer=dairy, email=VICTIM.upper(), role="viewer", now=again_at - timedelta(seconds=1)
        )
    assert refused.value.again_at == again_at
    assert invite(by=ada, customer=dairy, email="eve@dairy.example", role="viewer", now=now).pk
    assert invite(by=ada, customer=dairy, email=VICTIM, role="viewer", now=again_at).pk


def test_the_page_says_when_the_address_can_be_invited_again(ada: User, dairy: Customer) -> None:
    now = clock.now()
    for _ in range(PER_ADDRESS):
        invited_and_withdrawn(ada, dairy, now=now)
    status, said = pressed(ada, dairy, VICTIM)
    assert status == 422
    again = f"{now + WINDOW + timedelta(minutes=1):%Y-%m-%d %H:%M} UTC"
    limit = "has been invited 3 times in the last 24 hours, which is the limit."
    assert f"{limit} Send another invitation after {again}" in said
    assert Invitation.objects.count() == PER_ADDRESS


def test_what_one_customer_sends_is_not_counted_for_another(
    ada: User, dairy: Customer, charlie: User, bakery: Customer
) -> None:
    for _ in range(PER_ADDRESS):
        invited_and_withdrawn(charlie, bakery, now=clock.now())
    sent(charlie, bakery, PER_CUSTOMER, now=clock.now())
    assert pressed(ada, dairy, VICTIM)[0] == 302


def test_a_customer_sends_so_many_a_day(ada: User, dairy: Customer) -> None:
    now = clock.now()
    sent(ada, dairy, PER_CUSTOMER - 1, now=now)
    assert pressed(ada, dairy, VICTIM)[0] == 302
    status, said = pressed(ada, dairy, "eve@dairy.example")
    assert status == 422
    assert f"Alpine Dairy has sent {PER_CUSTOMER} invitations in the last 24 hours" in said
    with pytest.raises(TooManyInvitations) as refused:
        invite(by=ada, customer=dairy, email="eve@dairy.example", role="viewer", now=clock.now())
    assert refused.value.again_at == now + WINDOW
    assert invite(by=ada, customer=dairy, email="eve@dairy.example", role="viewer", now=now + WINDOW).pk


@pytest.mark.django_db(transaction=True)
def test_of_two_who_send_the_last_one_at_once_one_does(ada: User, dairy: Customer) -> None:
    now = clock.now()
    sent(ada, dairy, PER_CUSTOMER - 1, now=now)

    def another() -> None:
        with pytest.raises(TooManyInvitations):
            invite(by=ada, customer=dairy, email="eve@dairy.example", role="viewer", now=now)

    with thread_of(another) as start, transaction.atomic():
        invite(by=ada, customer=dairy, email=VICTIM, role="viewer", now=now)
        start()
    assert Invitation.objects.count() == PER_CUSTOMER
