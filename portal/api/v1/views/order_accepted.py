"""The response 202 to every order."""

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from portal.api.rest.permission_classes import caller
from portal.api.v1.serializers.orders import OrderSerializer
from portal.api.v1.serializers.vlls import VllSerializer
from portal.diagnosis.health import with_order
from portal.vll import queries
from portal.vll.models import Order, Vll

# All requests share one instance of each serializer: it keeps no state, and its construction takes longer
# than its use.
_ORDER, _VLL = OrderSerializer(), VllSerializer()


def accepted(request: Request, order: Order, vll: Vll | None = None) -> Response:
    """Return the response 202: the portal has accepted the order and will execute it.

    The header ``Location`` has the address of the order; the client can poll it there. ``vll``: the line with
    its ends, if the caller has just stored the line. With None, the function reads the line.
    """
    if vll is None:
        vll = queries.vlls(caller(request)).get(pk=order.vll_id)
    return Response(
        {
            "order": _ORDER.to_representation(order),
            "vll": _VLL.to_representation(with_order(vll, order)),
        },
        status=status.HTTP_202_ACCEPTED,
        headers={"Location": reverse("api-v1:order", args=[order.pk], request=request), "Retry-After": "1"},
    )
