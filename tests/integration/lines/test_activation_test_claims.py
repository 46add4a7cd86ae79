"""A worker that claims an activation test has it alone, even if two messages arrive at the same time."""

from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from django.db import connection, transaction

from portal.accounts.models import User
from portal.core import clock
from portal.vll.models import ActivationTest
from portal.vll.operations.activation_test_lifecycle import activation_test_claim
from tests.integration.activation_testing import Underlay
from tests.integration.awaited_locks import lock_is_awaited
from tests.integration.isp import Isp
from tests.integration.orders import order

pytestmark = pytest.mark.django_db(transaction=True)


def claim(test_id: UUID) -> ActivationTest | None:
    """Claim the test in a thread, with its own connection."""
    try:
        return activation_test_claim(test_id, now=clock.now())
    finally:
        connection.close()


def test_second_worker_does_not_get_a_test_whose_claim_it_waited_for(
    isp: Isp, alice: User, underlay: Underlay
) -> None:
    test = ActivationTest.objects.get(order=order(isp, alice))
    with ThreadPoolExecutor(1) as other:
        with transaction.atomic():
            assert activation_test_claim(test.pk, now=clock.now()) is not None
            second = other.submit(claim, test.pk)
            while not lock_is_awaited():
                assert not second.done()
        assert second.result() is None
