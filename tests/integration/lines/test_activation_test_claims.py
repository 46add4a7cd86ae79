"""A worker that claims an activation test has it alone, even if two messages arrive at the same time."""

import pytest

from portal.accounts.models import User
from portal.core import clock
from portal.vll.models import ActivationTest
from portal.vll.operations.activation_test_lifecycle import activation_test_claim
from tests.integration.activation_testing import Underlay
from tests.integration.awaited_locks import concurrently
from tests.integration.isp import Isp
from tests.integration.orders import order

pytestmark = pytest.mark.django_db(transaction=True)


def test_second_worker_does_not_get_a_test_whose_claim_it_waited_for(
    isp: Isp, alice: User, underlay: Underlay
) -> None:
    test = ActivationTest.objects.get(order=order(isp, alice))

    def claim() -> ActivationTest | None:
        return activation_test_claim(test.pk, now=clock.now())

    claims = list[ActivationTest | None]()
    waited, second = concurrently(lambda: claims.append(claim()), claim)
    assert claims[0] is not None
    assert waited
    assert second is None
