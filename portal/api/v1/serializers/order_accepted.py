"""The answer to every order, for the schema."""

from typing import Any

from rest_framework import serializers

from portal.api.v1.serializers.orders import OrderSerializer
from portal.api.v1.serializers.vlls import VllSerializer


class AcceptedSerializer(serializers.Serializer[Any]):
    """The order, and the line as it is now."""

    order = OrderSerializer()
    vll = VllSerializer()


class OrderAddedSerializer(AcceptedSerializer):
    """The answer to an order for a new line."""

    similar_orders = serializers.ListField(
        child=serializers.UUIDField(),
        help_text="Orders of the same customer in the last minute for the same, newest first, 10 at most. "
        "Descriptions may differ. Normally empty; otherwise this order may be a repetition of one of them.",
    )
