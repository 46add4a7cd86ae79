"""The response 202 to every order."""

from typing import Any

from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from portal.api.rest.permission_classes import caller
from portal.api.v1.lines.serializers import OrderSerializer, VllSerializer
from portal.diagnosis.health import with_order
from portal.vll import queries
from portal.vll.models import Order, Vll


class AcceptedSerializer(serializers.Serializer[Any]):
    """The order, and the present state of the line."""

    order = OrderSerializer()
    vll = VllSerializer()


class OrderAddedSerializer(AcceptedSerializer):
    """The response to an order for a new line."""

    similar_orders = serializers.ListField(
        child=serializers.UUIDField(),
        help_text="Orders of the same customer with the same content in the last minute, newest first, at"
        " most 10. Descriptions may differ. If not empty, this order may be an accidental repetition.",
    )


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
