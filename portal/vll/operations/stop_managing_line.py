"""End the management of a line: it keeps forwarding, and others manage it from then on (ADR 43)."""

from datetime import datetime

from django.db import transaction

from portal.accounts import permissions
from portal.accounts.models import User
from portal.vll.convergence.requests import converge_routers_of
from portal.vll.errors import NotAllowedToOrder, PortShutDown, RouterLetsNothingGo, WrongLifecycle
from portal.vll.models import Order, Vll
from portal.vll.operations.link_loss_forwarding import is_shut_down
from portal.vll.operations.modify_line import vll_lock
from portal.vll.operations.order_record import order_acknowledge
from portal.vll.operations.removal_steps import removal_values
from portal.vll.operations.state_compare_and_swap import lifecycle_move
from portal.vll.states import IN_SERVICE, Handover, Lifecycle, OrderAction


@transaction.atomic
def line_let_go(*, user: User, vll: Vll, now: datetime) -> Order:
    """Order that both routers stop managing the line. It keeps forwarding with its former tags.

    For the portal, the line then ends. This order cannot be cancelled, because others may use the line as
    soon as one router has released it. Raises NotAllowedToOrder, OrderIsOpen, WrongLifecycle,
    RouterLetsNothingGo, PortShutDown.
    """
    if not permissions.may_let_go(user, vll.customer):
        raise NotAllowedToOrder(customer=vll.customer.name)
    vll = vll_lock(vll, user)
    if vll.lifecycle not in IN_SERVICE:
        raise WrongLifecycle(lifecycle=vll.lifecycle, action="let go")
    ends = list(vll.ends.select_related("port__router__observed"))
    for end in ends:
        if not getattr(getattr(end.port.router, "observed", None), "adoption", ""):
            raise RouterLetsNothingGo(router=end.port.router.name)
    if is_shut_down(vll, ends):
        raise PortShutDown
    goes = removal_values(vll) | {"handover": Handover.RELEASE}
    lifecycle_move(vll, Lifecycle.PENDING_TERMINATE, now=now, actor=user.username, **goes)
    order = order_acknowledge(
        vll=vll, action=OrderAction.DELETE, revision=vll.revision, actor=user.username, now=now
    )
    converge_routers_of(vll, now=now)
    return order
