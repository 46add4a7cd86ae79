"""Statements that go to the server together have the effect of statements that go one by one."""

from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from portal.accounts.models import Customer
from portal.core.db.postgres_pipeline import pipelined
from portal.events.models import Event
from portal.events.outbox import announce
from portal.vll.models import Vll

pytestmark = pytest.mark.django_db


def test_a_refusal_in_the_middle_is_djangos_error_and_leaves_nothing(dairy: Customer) -> None:
    twice = uuid4()
    with pytest.raises(IntegrityError, match="duplicate key"), transaction.atomic(), pipelined():
        announce("first", now=timezone.now())
        for _ in range(2):
            Vll(
                id=twice,
                customer=dairy,
                created_at=timezone.now(),
                svc_mtu=1500,
                cir_bps=1,
                requested_transport="auto",
                encapsulation="vxlan",
                family=4,
                vni=7,
                frame=1514,
            ).save(force_insert=True)
        announce("last", now=timezone.now())
    assert not Event.objects.filter(kind__in=("first", "last")).exists()
    assert not Vll.objects.filter(pk=twice).exists()


def test_rows_may_be_read_among_what_is_sent() -> None:
    with transaction.atomic(), pipelined():
        announce("before", now=timezone.now())
        assert Event.objects.filter(kind="before").count() == 1
        announce("after", now=timezone.now())
    assert Event.objects.filter(kind__in=("before", "after")).count() == 2


@pytest.mark.django_db(transaction=True)
def test_nothing_is_sent_together_outside_a_transaction() -> None:
    with pytest.raises(RuntimeError, match="within a transaction"), pipelined():
        announce("router.seen", now=timezone.now())
    assert not Event.objects.exists()
