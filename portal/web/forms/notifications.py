"""The form to choose mails."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import User
from portal.notifications.mail_preferences import groups_for, wanted_groups
from portal.notifications.models import Group
from portal.web.forms.base import TablerForm

LABELS = {
    Group.ORDERS: _("Orders: accepted, waiting for approval, changes done, rejected, cancelled"),
    Group.FAILURES: _("Orders that failed"),
    Group.LINES: _("Lines that are in service, suspended or removed"),
    Group.STATUS: _("Lines that have been down, or up again, for two minutes"),
    Group.REPORTS: _("The monthly report with the 95th percentiles"),
    Group.WEBHOOKS: _("Webhooks that were disabled because they failed"),
    Group.NOC: _("For the NOC: orders to approve, overdue orders, configuration drift"),
}


class MailsForm(TablerForm):
    """The form to choose mails, with a checkbox for each group of mails that the user can receive."""

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        wanted = wanted_groups(user)
        for group in groups_for(user):
            self.fields[group.value] = forms.BooleanField(
                label=LABELS[group],
                required=False,
                initial=group in wanted,
                widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
            )

    def wanted(self) -> list[str]:
        return [name for name, is_wanted in self.cleaned_data.items() if is_wanted]
