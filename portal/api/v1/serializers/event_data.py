"""Facts as they were told: an object whose members depend on what happened."""

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers


@extend_schema_field({"type": ["object", "null"]})
class FactsField(serializers.JSONField):
    """Such as ``{"code": "vpp_refused", "message": "...", "side": "a"}``, or null."""
