"""Rows that go to the server together are the rows that Django would have written one by one."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction
from django.db.models import AutoField, Model
from django.utils import timezone

from portal.accounts.models import Customer, User
from portal.core.db.sessions import pipelined
from portal.core.db.statements import insert
from portal.core.environment import ActivationTestMode
from portal.events.models import Event
from portal.vll.models import Order, Vll
from portal.vll.models.vll import VllEnd
from tests.integration.isp import Isp
from tests.integration.orders import order

pytestmark = pytest.mark.django_db


def event(kind: str = "router.seen", **also: object) -> Event:
    return Event(at=timezone.now(), kind=kind, data={"text": "Zürich", "rate": 6 * 10**9}, **also)


@pytest.mark.parametrize("model", [Vll, VllEnd, Order, Event])
def test_an_inserted_row_is_the_one_that_django_would_insert(
    isp: Isp, alice: User, settings: Any, model: type[Model]
) -> None:
    settings.LONGLINE_LINE_TEST = (
        ActivationTestMode.OFF
    )  # Tests are kept permanently, and keep their order too.
    order(isp, alice, description="Zürich", eir_bps=5_000_000_000)
    row = model._default_manager.order_by("pk")[0]
    columns = [field.attname for field in model._meta.concrete_fields]
    # Keys that the database draws are not given.
    drawn = [field.attname for field in model._meta.concrete_fields if isinstance(field, AutoField)]
    given = {name: getattr(row, name) for name in columns if name not in drawn}

    def written_by(write: Callable[[Model], object]) -> dict[str, object]:
        here = transaction.savepoint()
        for older in (Event, Order, VllEnd, Vll):
            older._default_manager.all().delete()
            if older is model:
                break
        again = model(**given)
        write(again)
        assert not again._state.adding
        kept = model._default_manager.get()
        transaction.savepoint_rollback(here)
        return {name: getattr(kept, name) for name in given}

    assert written_by(insert) == written_by(lambda again: again.save(force_insert=True)) == given


def test_a_refusal_in_the_middle_is_djangos_error_and_leaves_nothing(dairy: Customer) -> None:
    twice = uuid4()
    with pytest.raises(IntegrityError, match="duplicate key"), transaction.atomic(), pipelined():
        insert(event("first"))
        for _ in range(2):
            insert(
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
                )
            )
        insert(event("last"))
    assert not Event.objects.filter(kind__in=("first", "last")).exists()
    assert not Vll.objects.filter(pk=twice).exists()


def test_several_rows_go_in_one_statement(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        insert(event("first", actor="ann"), event("second", actor="bob"))
    rows = Event.objects.filter(kind__in=("first", "second")).order_by("kind")
    assert list(rows.values_list("kind", "actor", "data")) == [
        ("first", "ann", event().data),
        ("second", "bob", event().data),
    ]


def test_rows_may_be_read_among_what_is_sent() -> None:
    with transaction.atomic(), pipelined():
        insert(event("before"))
        assert Event.objects.filter(kind="before").count() == 1
        insert(event("after"))
    assert Event.objects.filter(kind__in=("before", "after")).count() == 2


@pytest.mark.django_db(transaction=True)
def test_nothing_is_sent_together_outside_a_transaction() -> None:
    with pytest.raises(RuntimeError, match="within a transaction"), pipelined():
        insert(event())
    assert not Event.objects.exists()
