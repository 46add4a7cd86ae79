"""The members of a customer and its invitations, in requests and responses."""

from typing import Any

from rest_framework import serializers

from portal.accounts.models import Invitation, Membership
from portal.api.v1.serializers.strict_fields import StrictLookupField, StrictSerializer


class StrictEmailField(serializers.EmailField):
    """A mail address as a JSON string."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class MemberSerializer(serializers.ModelSerializer[Membership]):
    """A membership. ``user``: the id of the person, which is the same in every team."""

    customer = serializers.CharField(source="customer.name")
    username = serializers.CharField(source="user.username")
    full_name = serializers.CharField(source="user.get_full_name")
    email = serializers.CharField(source="user.email", help_text="Empty if unknown.")

    class Meta:
        model = Membership
        fields: tuple[str, ...] = ("id", "customer", "user", "username", "full_name", "email", "role")
        read_only_fields = fields


class MemberChangeSerializer(StrictSerializer):
    """A change of a membership."""

    role = serializers.ChoiceField(choices=Membership.Role.choices)


class InvitationSerializer(serializers.ModelSerializer[Invitation]):
    """An invitation. Only the mail contains the link. ``sent_at`` is null until a mail server accepts the
    mail.
    """

    customer = serializers.CharField(source="customer.name")
    invited_by = serializers.CharField(source="invited_by.username")

    class Meta:
        model = Invitation
        fields: tuple[str, ...] = (
            "id",
            "customer",
            "email",
            "role",
            "invited_by",
            "created_at",
            "expires_at",
            "sent_at",
        )
        read_only_fields = fields


class InvitationCreateSerializer(StrictSerializer):
    """A new invitation. ``customer``: a customer's name. You may omit it if you manage only one customer."""

    customer = StrictLookupField(max_length=100, allow_null=True, required=False, default=None)
    email = StrictEmailField(max_length=254)
    role = serializers.ChoiceField(choices=Membership.Role.choices)
