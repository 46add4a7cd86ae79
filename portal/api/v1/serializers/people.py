"""Accounts in responses, for the NOC and for their owners."""

from rest_framework import serializers

from portal.accounts.models import User


class PersonSerializer(serializers.ModelSerializer[User]):
    """An account. ``noc_role``: none, noc or nocAdmin."""

    full_name = serializers.CharField(source="get_full_name")
    email = serializers.CharField(help_text="Empty if unknown.")
    is_open = serializers.BooleanField(source="is_active", help_text="Whether its owner can sign in.")
    last_sign_in = serializers.DateTimeField(source="last_login", allow_null=True)
    has_second_factor = serializers.BooleanField()

    class Meta:
        model = User
        fields: tuple[str, ...] = (
            "id",
            "username",
            "full_name",
            "email",
            "noc_role",
            "is_open",
            "last_sign_in",
            "has_second_factor",
        )
        read_only_fields = fields
