"""The schema of the response to every order."""

from typing import Any

from rest_framework import serializers

from portal.api.v1.serializers.orders import OrderSerializer
from portal.api.v1.serializers.vlls import VllSerializer


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
