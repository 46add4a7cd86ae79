"""The mails that a user gets, by group."""

from typing import Any

from portal.accounts.models import User
from portal.api.v1.serializers.strict_fields import StrictBooleanField, StrictSerializer
from portal.notifications.mail_preferences import groups_for, wanted_groups


def _wanted(about: str) -> StrictBooleanField:
    return StrictBooleanField(required=False, help_text=about)


class MailsSerializer(StrictSerializer):
    """Whether you get mails, for each group that concerns you."""

    orders = _wanted("Orders: accepted, waiting for approval, changes done, rejected, cancelled.")
    failures = _wanted("Orders that failed.")
    lines = _wanted("Lines that are in service, suspended or removed.")
    status = _wanted("Lines that are down, or up again, for two minutes.")
    reports = _wanted("The monthly report with the 95th percentiles.")
    webhooks = _wanted("Webhooks that were disabled because they fail; for admins.")
    noc = _wanted("Orders to approve, overdue orders, drift; for NOC staff.")

    def get_fields(self) -> Any:
        """Return a field for each group of the caller. Without a caller (in the schema), return fields for
        all groups.
        """
        fields = super().get_fields()
        reader = getattr(self.context.get("request"), "user", None)
        if not isinstance(reader, User):
            return fields
        concern = groups_for(reader)
        return {name: field for name, field in fields.items() if name in concern}

    def to_representation(self, instance: User) -> dict[str, bool]:
        wanted = wanted_groups(instance)
        return {name: name in wanted for name in self.get_fields()}
