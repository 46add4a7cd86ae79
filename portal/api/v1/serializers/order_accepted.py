"""The answer to every order, for the schema."""

from typing import Any

from rest_framework import serializers

from portal.api.v1.serializers.orders import OrderSerializer
from portal.api.v1.serializers.vlls import VllSerializer


class AcceptedSerializer(serializers.Serializer[Any]):
    """The order, and the line as it is now."""

    order = OrderSerializer()
    vll = VllSerializer()
