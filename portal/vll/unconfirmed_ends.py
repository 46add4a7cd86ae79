"""Ends whose present wanted state their router has not confirmed yet."""

from django.db.models import F, Q, QuerySet

from portal.vll.models import Order, VllEnd
from portal.vll.states import AdminStatus, Lifecycle, OrderAction, OrderState

# Orders for new lines that are pending approval. No router may get these lines yet.
ADDS_PENDING_APPROVAL = Order.objects.filter(state=OrderState.PENDING_APPROVAL, action=OrderAction.ADD)
GONE = (Lifecycle.TERMINATED, Lifecycle.CANCELLED)
_SETTLED = Q(status_revision=F("vll__revision")) & (
    Q(vll__wanted_present=True, status=VllEnd.Status.VERIFIED)
    | Q(vll__wanted_present=True, vll__admin_status=AdminStatus.TESTING, status=VllEnd.Status.TESTING)
    | Q(vll__wanted_present=False, status=VllEnd.Status.REMOVED)
)


def unconfirmed_ends() -> QuerySet[VllEnd]:
    """Select the unconfirmed ends of all routers.

    Ends of finished lines and of new lines with an order pending approval are left out, because no intent
    contains them.
    """
    return (
        VllEnd.objects.exclude(vll__lifecycle__in=GONE)
        .exclude(_SETTLED)
        .exclude(vll__in=ADDS_PENDING_APPROVAL.values("vll"))
    )
