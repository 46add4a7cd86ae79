"""The facts of an event: an object. The type of the event determines the members."""

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers


@extend_schema_field({"type": ["object", "null"]})
class FactsField(serializers.JSONField):
    """Facts, for example ``{"code": "vpp_refused", "message": "...", "side": "a"}``, or null."""
