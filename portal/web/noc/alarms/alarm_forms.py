"""The forms to acknowledge, assign and silence an alarm, and the filters of the alarm history."""

from datetime import datetime, time, timedelta
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import User
from portal.accounts.noc_staff import noc_staff
from portal.alarms.kinds import Kind
from portal.core import clock
from portal.web.fields.base import LookupField, TablerForm
from portal.web.fields.moments import MomentField

_MORNING = time(8, 0)


class AcknowledgeForm(TablerForm):
    """The form to acknowledge an alarm, with a note for colleagues."""

    note = forms.CharField(
        label=_("Note"),
        required=False,
        max_length=500,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text=_("What you know about it, or who is on their way. Optional."),
    )


class AssignForm(TablerForm):
    """The form to assign an alarm to a member of the NOC, or to nobody."""

    to = forms.CharField(label=_("Assigned to"), required=False, max_length=150, widget=forms.Select)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        people = [(person.username, _named(person)) for person in noc_staff().filter(is_active=True)]
        self.fields["to"].widget.choices = [("", _("nobody")), *people]


class SilenceForm(TablerForm):
    """The form to silence an alarm for some time. "Tomorrow" is a day in the reader's time zone."""

    HOUR, SHIFT, MORNING, TIME = "hour", "shift", "morning", "time"

    lasting = forms.ChoiceField(
        label=_("Silence it"),
        choices=[
            (HOUR, _("for 1 hour")),
            (SHIFT, _("for 8 hours")),
            (MORNING, _("until tomorrow, 08:00")),
            (TIME, _("until a time that I choose")),
        ],
    )
    until = MomentField(
        label=_("Until"),
        required=False,
        help_text=_("Only with “until a time that I choose”; at most 30 days."),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("lasting") == self.TIME and "until" in cleaned and cleaned["until"] is None:
            self.add_error("until", _("Choose when the silence ends."))
        return cleaned

    def ends_at(self, now: datetime) -> datetime:
        """Return the end of the silence. The form must be valid."""
        chosen = self.cleaned_data["lasting"]
        if chosen == self.HOUR:
            return now + timedelta(hours=1)
        if chosen == self.SHIFT:
            return now + timedelta(hours=8)
        if chosen == self.MORNING:
            tomorrow = timezone.localtime(now).date() + timedelta(days=1)
            return datetime.combine(tomorrow, _MORNING, tzinfo=timezone.get_current_timezone())
        until: datetime = self.cleaned_data["until"]
        return until


class AlarmHistoryForm(TablerForm):
    """The filters of the alarm history. An empty field does not filter."""

    UP, CLEARED = "up", "cleared"

    kind = forms.ChoiceField(label=_("Kind"), required=False, choices=[("", _("any")), *Kind.choices])
    state = forms.ChoiceField(
        label=_("State"),
        required=False,
        choices=[("", _("any")), (UP, _("active now")), (CLEARED, _("cleared"))],
    )
    router = LookupField(
        label=_("Router"),
        required=False,
        max_length=63,
        widget=forms.TextInput(attrs={"autocapitalize": "none", "spellcheck": "false"}),
    )
    since = MomentField(label=_("Active after"), required=False)
    until = MomentField(label=_("Active before"), required=False)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        since, until = cleaned.get("since"), cleaned.get("until")
        if since and until and until <= since:
            self.add_error("until", _("This is not after the other time. Choose a later one."))
        if since and since > clock.now():
            self.add_error("since", _("This is in the future. Choose an earlier time."))
        return cleaned


def _named(person: User) -> str:
    return person.get_full_name() or person.username
