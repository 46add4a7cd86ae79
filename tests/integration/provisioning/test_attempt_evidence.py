"""Evidence records new facts and does not repeat known ones."""

from typing import Any

import pytest

from portal.accounts.models import User
from portal.vll.models import Attempt
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.provisioning.test_converge_job import agents, converge, rhino  # noqa: F401 - fixtures
from tests.integration.stand_in_agent import StandInAgent

pytestmark = pytest.mark.django_db(transaction=True)


def ends_in(attempt: Attempt) -> tuple[list[Any], int]:
    return attempt.answer["ends"], attempt.answer["unchanged"]


def test_first_answer_about_an_end_is_stored_and_repetitions_are_counted(
    isp: Isp,
    alice: User,
    rhino: StandInAgent,  # noqa: F811
) -> None:
    vll = order(isp, alice).vll
    converge(isp, "rhino")
    converge(isp, "rhino")
    kept = Attempt.objects.get()
    said, unchanged = ends_in(kept)
    assert [(end["vll"], end["status"]) for end in said] == [(str(vll.pk), "verified")]
    assert (unchanged, kept.times) == (0, 2)
