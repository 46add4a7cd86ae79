"""The state of the synchronization with NetBox, as JSON."""

from typing import Any

from rest_framework import serializers


class NetboxSerializer(serializers.Serializer[Any]):
    """The state of the synchronization. If no NetBox is configured, ``configured`` is false and all other
    members are null.
    """

    configured = serializers.BooleanField()
    release = serializers.CharField(allow_null=True)
    stale = serializers.BooleanField(
        allow_null=True, help_text="Whether the last complete import is older than two intervals."
    )
    imported_at = serializers.DateTimeField(
        allow_null=True, help_text="The time of the last import that read all of NetBox."
    )
    exported_at = serializers.DateTimeField(
        allow_null=True, help_text="The time of the last check that found every line in NetBox up to date."
    )
    failing_since = serializers.DateTimeField(allow_null=True)
    retry_at = serializers.DateTimeField(allow_null=True)
    error = serializers.CharField(
        allow_null=True, help_text="The reason for the failure, and the action that it needs."
    )
    lines_waiting = serializers.IntegerField(
        allow_null=True, help_text="The number of lines that are not in NetBox yet."
    )
    lines_in_error = serializers.IntegerField(
        allow_null=True, help_text="The number of lines that NetBox refuses."
    )
