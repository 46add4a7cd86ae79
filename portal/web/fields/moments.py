"""A field for a date and time in the reader's time zone. The label names the zone (ADR 70)."""

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from portal.core.reader_texts import time_text, zone_name, zone_named

_WRITTEN = "%Y-%m-%dT%H:%M"
_FORMATS = [_WRITTEN, "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S"]
_FIRST, _SECOND = "first", "second"


@dataclass(frozen=True, slots=True)
class WrittenMoment:
    """The submitted values of the field.

    ``zone``: the name of the time zone in which the form was shown. ``which``: when clocks are set back, a
    time can occur twice; this is the chosen occurrence, the first or the second.
    """

    text: str
    zone: str
    which: str = ""

    @property
    def tzinfo(self) -> tzinfo:
        """The time zone in which the form was shown. If it is unknown, the active time zone."""
        return zone_named(self.zone) or timezone.get_current_timezone()

    def __str__(self) -> str:
        return self.text


class MomentInput(forms.DateTimeInput):
    """The browser's input for date and time, with the time zone in a hidden field."""

    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__(format=_WRITTEN)

    def value_from_datadict(self, data: Any, files: Any, name: str) -> WrittenMoment | None:
        text = data.get(name)
        if not text:
            return None
        return WrittenMoment(text.strip(), data.get(f"{name}_zone", ""), data.get(f"{name}_which", ""))

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        written = value if isinstance(value, WrittenMoment) else None
        zone = written.tzinfo if written else timezone.get_current_timezone()
        shown = super().render(name, written.text if written else value, attrs, renderer)
        return format_html(
            '{}<input type="hidden" name="{}_zone" value="{}">{}',
            shown,
            name,
            _name_of(zone),
            _which_select(name, written) if written else "",
        )


class MomentField(forms.DateTimeField):
    """A field whose cleaned value is an aware datetime. Its label names the time zone.

    When clocks are set forward, some times do not exist: the field refuses them. When clocks are set back,
    some times occur twice: the field refuses them until the user chooses one of the two occurrences.
    """

    widget = MomentInput

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(input_formats=_FORMATS, **kwargs)

    def get_bound_field(self, form: Any, field_name: str) -> forms.BoundField:
        bound = super().get_bound_field(form, field_name)
        sent = bound.data if form.is_bound else None
        zone = sent.tzinfo if isinstance(sent, WrittenMoment) else timezone.get_current_timezone()
        bound.label = f"{self.label} ({_name_of(zone)})"
        return bound

    def to_python(self, value: Any) -> datetime | None:
        if not isinstance(value, WrittenMoment):
            return super().to_python(value)
        naive = _naive(value)
        both = _moments(naive, value.tzinfo)
        if not both:
            raise ValidationError(
                _("The clocks in {zone} skip {time} that night. Enter an earlier or a later time.").format(
                    zone=_name_of(value.tzinfo), time=f"{naive:%H:%M}"
                ),
                code="skipped",
            )
        if len(both) == 1:
            return both[0]
        if value.which not in (_FIRST, _SECOND):
            raise ValidationError(
                _("{time} occurs twice that night in {zone}. Choose which one you mean.").format(
                    zone=_name_of(value.tzinfo), time=f"{naive:%H:%M}"
                ),
                code="twice",
            )
        return both[0] if value.which == _FIRST else both[1]


def _naive(written: WrittenMoment) -> datetime:
    for each in _FORMATS:
        try:
            return datetime.strptime(written.text, each)  # noqa: DTZ007 - its zone follows
        except ValueError:
            continue
    raise ValidationError(
        _("Enter a date and a time in {zone}, such as 2026-11-30 14:00.").format(
            zone=_name_of(written.tzinfo)
        ),
        code="invalid",
    )


def _moments(naive: datetime, zone: tzinfo) -> list[datetime]:
    """Return the moments (UTC) when clocks in the zone show this time: none, one or two."""
    found = []
    for fold in (0, 1):
        at = naive.replace(tzinfo=zone, fold=fold)
        utc = _utc(at)
        if utc is not None and utc.astimezone(zone).replace(tzinfo=None) == naive and utc not in found:
            found.append(utc)
    return found


def _utc(at: datetime) -> datetime | None:
    """Return the moment in UTC; None if it is outside datetime's range."""
    try:
        return at.astimezone(UTC)
    except OverflowError:
        return None


def _name_of(zone: tzinfo) -> str:
    with timezone.override(zone):
        return zone_name()


def _which_select(name: str, written: WrittenMoment) -> SafeString | str:
    """If the time occurs twice, return a select with the two moments. For other times, return ""."""
    try:
        both = _moments(_naive(written), written.tzinfo)
    except ValidationError:
        return ""
    if len(both) < 2:
        return ""
    with timezone.override(written.tzinfo):
        options = format_html_join(
            "",
            '<option value="{}"{}>{}</option>',
            (
                (value, " selected" if value == written.which else "", text)
                for value, text in (
                    ("", _("Choose which one")),
                    (_FIRST, _("the first, {time}").format(time=time_text(both[0]))),
                    (_SECOND, _("the second, {time}").format(time=time_text(both[1]))),
                )
            ),
        )
    label = _("Which of the two")
    return format_html(
        '<select class="form-select" name="{}_which" aria-label="{}">{}</select>', name, label, options
    )
