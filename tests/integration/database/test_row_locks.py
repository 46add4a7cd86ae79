"""A lock on a port or a line does not block rows that only refer to it, so that no deadlock arises."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction

from portal.accounts.models import User
from portal.core import clock
from portal.inventory.operations import router_change
from portal.vll.line_rules import ports_of
from portal.vll.models import TunnelPath, Vll
from portal.vll.operations.modify_line import vll_lock
from portal.vll.operations.paths import tunnel_paths_keep
from portal.vll.router_operations.drain import drain_begin
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.router_answers import activate

pytestmark = pytest.mark.django_db(transaction=True)


def reference(table: str, keys: list[Any], *, lock: str = "KEY SHARE") -> None:
    """Lock rows from another connection; by default as PostgreSQL checks a foreign key (RI_FKey_check)."""
    mine = {name: connection.settings_dict[name.upper()] for name in ("host", "port", "user", "password")}
    with psycopg.connect(**mine, dbname=connection.settings_dict["NAME"]) as other:
        query = f"SELECT FROM {table} WHERE id = ANY(%s) FOR {lock} NOWAIT"
        assert other.execute(query, [keys]).rowcount == len(keys)


def lock_ports(vll: Vll, user: User) -> None:
    ports_of(user, [end.port_id for end in vll.ends.all()], lock=True)


@pytest.mark.parametrize("lock", [lock_ports, lambda vll, user: vll_lock(vll, user)], ids=["ports", "line"])
def test_an_order_delays_nothing_that_refers_to_its_ports_and_its_line(
    isp: Isp, alice: User, lock: Callable[[Vll, User], object]
) -> None:
    vll = order(isp, alice).vll
    activate(vll)
    with transaction.atomic():
        lock(vll, alice)
        reference("inventory_port", [end.port_id for end in vll.ends.all()])
        reference("vll_vll", [vll.pk])


def test_keeping_paths_locks_none_that_stays_as_it_is(isp: Isp, alice: User) -> None:
    activate(order(isp, alice, transport="vxlan4").vll)
    tunnel_paths_keep(now=clock.now())
    with transaction.atomic():
        tunnel_paths_keep(now=clock.now())
        reference("vll_tunnelpath", [TunnelPath.objects.get().pk], lock="UPDATE")


def test_a_change_of_a_router_delays_no_report_of_its_agent(isp: Isp, nora: User) -> None:
    """A report has locked the topology's version by then, and the change waits for it."""
    rhino = isp.routers["rhino"]
    with transaction.atomic():
        router_change(router=rhino, user=nora, now=clock.now(), agent_url="https://10.0.0.9:9443")
        reference("inventory_router", [rhino.pk])
        drain_begin(router=rhino, user=nora, now=clock.now())
        reference("inventory_router", [rhino.pk])
