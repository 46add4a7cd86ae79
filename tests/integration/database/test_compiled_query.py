"""A compiled query returns the same rows as its queryset."""

from uuid import uuid4

import pytest
from django.db.models import BigIntegerField, Q, QuerySet, UUIDField
from django.forms.models import model_to_dict

from portal.accounts.models import Customer, User
from portal.core.db.row_conditions import is_one_of
from portal.core.db.statements import CompiledQuery
from portal.inventory.models import Port
from portal.vll.line_rules import ports_of
from portal.vll.models import Vll
from tests.integration.isp import Isp

pytestmark = pytest.mark.django_db


def test_users_ports_include_all_related_rows(isp: Isp, alice: User, nora: User) -> None:
    Port.objects.create(
        router=isp.routers["zebra"], interface="nobodys", speed_bps=1, bookable_bps=1, description="spare"
    )
    ids = list(Port.objects.values_list("pk", flat=True))
    joined = Port.objects.select_related("router__site", "router__observed", "customer")
    for user in (alice, nora, alice):
        expected = {port.pk: port for port in joined.filter(pk__in=ids)}
        found = ports_of(user, ids, lock=True)
        assert set(found) == {
            pk for pk, port in expected.items() if user.is_noc or port.customer_id is not None
        }
        for pk, port in found.items():
            for read, wanted in (
                (port, expected[pk]),
                (port.router, expected[pk].router),
                (port.router.site, expected[pk].router.site),
                (port.customer, expected[pk].customer),
            ):
                assert read == wanted
                if read is not None:
                    assert model_to_dict(read) == model_to_dict(wanted)
            assert hasattr(port.router, "observed") == hasattr(expected[pk].router, "observed")


def test_each_value_of_a_list_selects_only_its_row(isp: Isp, charlie: User, alice: User) -> None:
    ids = [port.pk for port in isp.ports.values()]
    assert ports_of(charlie, ids, lock=False) == {}
    for pk in sorted(ports_of(alice, ids, lock=False)):
        assert list(ports_of(alice, [pk], lock=False)) == [pk]


def test_list_of_any_length_selects_its_rows(isp: Isp, vll: Vll) -> None:
    ports = CompiledQuery[Port](lambda ids: Port.objects.filter(is_one_of("pk", ids, BigIntegerField())))
    every = sorted(Port.objects.values_list("pk", flat=True))
    for ids in (every, every[:1], every[1:3]):
        assert sorted(port.pk for port in ports(ids)) == ids
    lines = CompiledQuery[Vll](lambda ids: Vll.objects.filter(is_one_of("pk", ids, UUIDField())))
    assert lines([uuid4(), vll.pk]) == [vll]
    assert lines([uuid4()]) == []


def test_inactive_user_sees_nothing(isp: Isp, nora: User) -> None:
    nora.is_active = False
    assert ports_of(nora, [port.pk for port in isp.ports.values()], lock=False) == {}


def test_value_missing_from_the_sql_is_an_error() -> None:
    def careless(first: int, second: int) -> QuerySet[Customer]:
        return Customer.objects.filter(Q(pk=first))

    with pytest.raises(ValueError, match="each value"):
        CompiledQuery[Customer](careless)(1, 2)
