"""An intent is read in one look: an end that moves at that very moment is wanted once or gone once."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from portal.accounts.models import User
from portal.core import clock
from portal.vll.models import Vll
from portal.vll.operations.modify_line import order_modify
from portal.vll.operations.order_endings import order_cancel
from provisioning.intent_document import RouterIntent
from provisioning.intent_generations import next_intent
from tests.integration.isp import Isp

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def after_the_first_reading(do: Callable[[], object]) -> Iterator[None]:
    """``do`` on another connection, committed, as soon as this one has read anything of the ends."""
    done: list[object] = []

    def elsewhere() -> None:
        try:
            done.append(do())
        finally:
            connection.close()

    def run(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        answer = execute(sql, params, many, context)
        if "vll_vllend" in sql and not done:
            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join(timeout=60)
            assert done, "it waits for us, or was refused"
        return answer

    with connection.execute_wrapper(run):
        yield
    assert done


def spoken_of(intent: RouterIntent, vll: Vll) -> list[bool]:
    """For each mention of the A end whether it is to be there."""
    return [key.present for key in intent.end_keys() if (key.vll, key.side) == (vll.pk, "a")]


def test_an_end_that_moves_away_meanwhile_is_not_both_there_and_gone(isp: Isp, alice: User, vll: Vll) -> None:
    def move() -> object:
        changes = {"a_end": {"port": isp.ports["hippo:host-cust2"].pk}}
        return order_modify(user=alice, vll=vll, changes=changes, now=clock.now())

    with after_the_first_reading(move):
        intent = next_intent(isp.routers["rhino"])
    assert spoken_of(intent, vll) == [True]
    assert spoken_of(next_intent(isp.routers["rhino"]), vll) == [False]


def test_an_end_that_comes_back_meanwhile_is_not_left_out(isp: Isp, alice: User, vll: Vll) -> None:
    changes = {"a_end": {"port": isp.ports["hippo:host-cust2"].pk}}
    placed = order_modify(user=alice, vll=vll, changes=changes, now=clock.now())
    with after_the_first_reading(lambda: order_cancel(user=alice, order=placed, now=clock.now())):
        intent = next_intent(isp.routers["rhino"])
    assert spoken_of(intent, vll) == [False]
    assert spoken_of(next_intent(isp.routers["rhino"]), vll) == [True]
