"""The state of NetBox, as JSON."""

from typing import Any

from rest_framework import serializers


class NetboxSerializer(serializers.Serializer[Any]):
    """Without a NetBox only ``configured`` says something."""

    configured = serializers.BooleanField()
    release = serializers.CharField(allow_null=True)
    stale = serializers.BooleanField(
        allow_null=True, help_text="What is known of it is older than two rounds."
    )
    imported_at = serializers.DateTimeField(allow_null=True, help_text="When all of it was last read.")
    exported_at = serializers.DateTimeField(
        allow_null=True, help_text="When every line was last checked there."
    )
    failing_since = serializers.DateTimeField(allow_null=True)
    retry_at = serializers.DateTimeField(allow_null=True)
    error = serializers.CharField(allow_null=True, help_text="Why it does not go, and what to do.")
    lines_waiting = serializers.IntegerField(allow_null=True, help_text="Lines that are to be written yet.")
    lines_in_error = serializers.IntegerField(allow_null=True, help_text="Lines that NetBox does not take.")
