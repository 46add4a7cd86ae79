"""The fixture ``no_joined_updates`` recognizes UPDATEs that do not check their conditions again."""

from types import FunctionType
from typing import Any

import pytest
from django.db.models import QuerySet
from django.db.models.sql.subqueries import UpdateQuery

from devstack.folders import ROOT
from portal.inventory.models import Port
from portal.vll.models import VllEnd
from tests.joined_updates import has_join

pytestmark = pytest.mark.django_db
ENDS = VllEnd.objects.filter(side="a")


def test_only_updates_of_the_product_are_collected(joined_updates: list[str]) -> None:
    def clear(rows: QuerySet[VllEnd]) -> None:
        rows.update(reason="")

    rows = ENDS.filter(port__router=1)
    clear(rows)
    assert joined_updates == []
    of_the_product = clear.__code__.replace(co_filename=str(ROOT / "portal" / "vll" / "ends.py"))
    FunctionType(of_the_product, {})(rows)
    assert len(joined_updates) == 1
    joined_updates.clear()


def update_of(rows: QuerySet[Any]) -> str:
    query = rows.query.chain(UpdateQuery)
    query.add_update_values({"reason": ""})
    return query.get_compiler("default").as_sql()[0]


@pytest.mark.parametrize("rows", [ENDS.filter(port__router=1), ENDS.filter(port__router=1).exclude(pk=1)])
def test_conditions_on_a_joined_table_are_recognized(rows: QuerySet[VllEnd]) -> None:
    assert has_join(update_of(rows))


@pytest.mark.parametrize(
    "rows",
    [
        ENDS,
        ENDS.filter(port__in=Port.objects.filter(router=1)),
        ENDS.filter(pk__in=VllEnd.objects.filter(port__router=1).select_for_update()),
    ],
    ids=["own columns", "a subquery of another table", "a subquery that locks its rows"],
)
def test_conditions_that_are_checked_again_or_locked_are_accepted(rows: QuerySet[VllEnd]) -> None:
    assert not has_join(update_of(rows))
