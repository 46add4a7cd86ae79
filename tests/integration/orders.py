"""Short ways to order lines in tests."""

from typing import Any

from portal.accounts.models import User
from portal.core import clock
from portal.core.network.vlan_tags import Tagging
from portal.vll.line_spec import EndSpec, LineSpec
from portal.vll.models import Order, Vll
from portal.vll.operations.add_line import order_add
from portal.vll.operations.modify_line import order_modify
from tests.integration.isp import GBIT, Isp


def end(isp: Isp, port: str, tagging: str = "dot1q", outer: Any = 100, **more: Any) -> EndSpec:
    return EndSpec(
        port=isp.ports[port].pk,
        tagging=Tagging(tagging),
        outer_vlan=None if tagging == "untagged" else outer,
        **more,
    )


def order(isp: Isp, user: User, **changes: Any) -> Order:
    """Order Rhino to Hippo, dot1q 100 at both ends, 1500 bytes, 1 Gbit/s, auto; ``changes`` replace parts."""
    ordered: dict[str, Any] = {
        "a_end": end(isp, "rhino:host-cust1"),
        "z_end": end(isp, "hippo:host-cust1"),
        "svc_mtu": 1500,
        "cir_bps": GBIT,
        "transport": "auto",
        "description": "ZRH-AMS",
    }
    placing = {name: changes.pop(name) for name in ("now", "reservation", "retry_of") if name in changes}
    return order_add(user=user, spec=LineSpec(**ordered | changes), **{"now": clock.now(), **placing})


def modify(user: User, vll: Vll, **changes: Any) -> Order:
    """Change a line now; ``vll`` is the line as its order left it."""
    placed = order_modify(user=user, vll=vll, changes=changes, now=clock.now())
    vll.refresh_from_db()
    return placed
