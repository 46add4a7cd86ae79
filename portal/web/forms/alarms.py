"""What people say of an alarm, and how its history is narrowed."""

from datetime import UTC, datetime, time, timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import User
from portal.accounts.noc_staff import noc_staff
from portal.alarms.kinds import Kind
from portal.core import clock
from portal.web.forms.base import LookupField, TablerForm

_MORNING = time(8, 0, tzinfo=UTC)
_MOMENTS = ["%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S"]


def _moment(label: Any, help_text: Any = "") -> forms.DateTimeField:
    """The portal's own time zone is UTC, so that is what is written."""
    return forms.DateTimeField(
        label=label,
        required=False,
        help_text=help_text,
        input_formats=_MOMENTS,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        error_messages={"invalid": _("Enter a date and a time in UTC, such as 2026-11-30 14:00.")},
    )


class AcknowledgeForm(TablerForm):
    """What others are to know."""

    note = forms.CharField(
        label=_("Note"),
        required=False,
        max_length=500,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text=_("What you know about it, or who is on their way. Optional."),
    )


class AssignForm(TablerForm):
    """To whom: anybody of the NOC, or nobody."""

    to = forms.CharField(label=_("Assigned to"), required=False, max_length=150, widget=forms.Select)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        people = [(person.username, _named(person)) for person in noc_staff().filter(is_active=True)]
        self.fields["to"].widget.choices = [("", _("nobody")), *people]


class SilenceForm(TablerForm):
    """For how long."""

    HOUR, SHIFT, MORNING, TIME = "hour", "shift", "morning", "time"

    lasting = forms.ChoiceField(
        label=_("Silence it"),
        choices=[
            (HOUR, _("for 1 hour")),
            (SHIFT, _("for 8 hours")),
            (MORNING, _("until tomorrow, 08:00 UTC")),
            (TIME, _("until a time that I choose")),
        ],
    )
    until = _moment(_("Until (UTC)"), _("Only for a time that you choose; 30 days at most."))

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("lasting") == self.TIME and "until" in cleaned and cleaned["until"] is None:
            self.add_error("until", _("Choose until when it is to be silent."))
        return cleaned

    def ends_at(self, now: datetime) -> datetime:
        """The end of the silence, once the form is valid."""
        chosen = self.cleaned_data["lasting"]
        if chosen == self.HOUR:
            return now + timedelta(hours=1)
        if chosen == self.SHIFT:
            return now + timedelta(hours=8)
        if chosen == self.MORNING:
            return datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), _MORNING)
        until: datetime = self.cleaned_data["until"]
        return until


class AlarmHistoryForm(TablerForm):
    """Which alarms of the past; an empty field narrows nothing."""

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
    since = _moment(_("Active after (UTC)"))
    until = _moment(_("Active before (UTC)"))

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
