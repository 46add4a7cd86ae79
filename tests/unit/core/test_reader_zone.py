"""Times are shown and read in the reader's zone, also in nights with a clock change."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django import forms
from django.http import QueryDict
from django.utils import timezone, translation

from portal.core.reader_texts import (
    in_english,
    moment_text,
    precise_moment_text,
    stored_text_shown,
    time_text,
    zone_named,
)
from portal.web.fields.moments import MomentField
from portal.web.noc.alarms.alarm_views import SilenceForm

BERLIN, KATHMANDU, NEW_YORK = "Europe/Berlin", "Asia/Kathmandu", "America/New_York"


class MomentForm(forms.Form):
    at = MomentField(label="When", required=False)


def sent(at: str, **more: str) -> MomentForm:
    data = QueryDict(mutable=True)
    data.update({"at": at, **more})
    return MomentForm(data)


def read(at: str, zone: str, which: str = "") -> datetime:
    form = sent(at, at_zone=zone, at_which=which)
    assert form.is_valid(), form.errors
    moment: datetime = form.cleaned_data["at"]
    return moment


def refusal(at: str, zone: str) -> Any:
    form = sent(at, at_zone=zone)
    assert not form.is_valid()
    [error] = form.errors.as_data()["at"]
    return error


@pytest.mark.parametrize(
    ("written", "zone", "utc"),
    [
        # Clocks in Europe go forward on 28 March 2027 and back on 31 October 2027; in New York on 14 March
        # and 7 November; in Kathmandu never.
        ("2027-03-28T01:59", BERLIN, "2027-03-28 00:59"),
        ("2027-03-28T03:00", BERLIN, "2027-03-28 01:00"),
        ("2027-03-28T02:00", KATHMANDU, "2027-03-27 20:15"),
        ("2027-03-28T02:30", NEW_YORK, "2027-03-28 06:30"),
        ("2027-10-25T02:00", BERLIN, "2027-10-25 00:00"),
        ("2027-10-25T02:00", KATHMANDU, "2027-10-24 20:15"),
        ("2027-10-25T02:00", NEW_YORK, "2027-10-25 06:00"),
        ("2027-10-31T01:59", BERLIN, "2027-10-30 23:59"),
        ("2027-10-31T03:00", BERLIN, "2027-10-31 02:00"),
        ("2027-10-31T02:30", KATHMANDU, "2027-10-30 20:45"),
        ("2027-11-07T02:00", NEW_YORK, "2027-11-07 07:00"),
        ("2026-12-24T02:00", BERLIN, "2026-12-24 01:00"),
        ("2026-12-24 02:00", "", "2026-12-24 02:00"),
        ("2026-12-24T02:00", "Nowhere/At_All", "2026-12-24 02:00"),
    ],
)
def test_a_time_is_read_in_the_zone_that_its_label_names(written: str, zone: str, utc: str) -> None:
    assert f"{read(written, zone).astimezone(UTC):%Y-%m-%d %H:%M}" == utc


@pytest.mark.parametrize(
    ("written", "zone"),
    [("2027-03-28T02:30", BERLIN), ("2027-03-28T02:00", BERLIN), ("2027-03-14T02:30", NEW_YORK)],
)
def test_a_time_that_the_clocks_skip_is_refused(written: str, zone: str) -> None:
    error = refusal(written, zone)
    assert error.code == "skipped"
    assert zone in error.messages[0]


@pytest.mark.parametrize(
    ("written", "zone", "first", "second", "shown"),
    [
        ("2027-10-31T02:30", BERLIN, "00:30", "01:30", ["02:30 CEST", "02:30 CET"]),
        ("2027-11-07T01:30", NEW_YORK, "05:30", "06:30", ["01:30 EDT", "01:30 EST"]),
    ],
)
def test_the_form_asks_which_of_two_equal_times_is_meant(
    written: str, zone: str, first: str, second: str, shown: list[str]
) -> None:
    assert refusal(written, zone).code == "twice"
    text = str(sent(written, at_zone=zone)["at"])
    assert all(part in text for part in [*shown, 'name="at_which"', f'value="{zone}"', f'value="{written}"'])
    assert f"{read(written, zone, 'first').astimezone(UTC):%H:%M}" == first
    assert f"{read(written, zone, 'second').astimezone(UTC):%H:%M}" == second


def test_the_label_names_the_zone_in_which_the_time_is_read() -> None:
    with timezone.override(zone_named(KATHMANDU)):
        assert MomentForm()["at"].label == f"When ({KATHMANDU})"
        assert f'name="at_zone" value="{KATHMANDU}"' in str(MomentForm()["at"])
        # The reader has travelled since the page was opened: the page's zone counts.
        form = sent("2026-12-24T02:00", at_zone=BERLIN)
        assert form["at"].label == f"When ({BERLIN})"
        assert form.is_valid()
        assert form.cleaned_data["at"] == datetime(2026, 12, 24, 1, tzinfo=UTC)
    assert MomentForm()["at"].label == "When (UTC)"


@pytest.mark.parametrize(
    "at", ["tomorrow", "2026-13-01T00:00", "0001-01-01T00:00", "9999-12-31T23:59", "\0", "2" * 5000]
)
@pytest.mark.parametrize("zone", [BERLIN, KATHMANDU, NEW_YORK, "Etc/GMT+12"])
def test_any_text_is_read_or_refused(at: str, zone: str) -> None:
    sent(at, at_zone=zone).is_valid()
    str(sent(at, at_zone=zone)["at"])


@pytest.mark.parametrize(
    "name", ["", "/etc/passwd", "../UTC", "Europe", "Europe/Berlin\n", "x" * 500, "Nowhere", "a\0b"]
)
def test_an_unknown_zone_is_none(name: str) -> None:
    assert zone_named(name) is None


@pytest.mark.parametrize(
    ("zone", "summer", "winter"),
    [
        (BERLIN, "2027-10-31 02:30 CEST", "2027-10-31 02:30 CET"),
        (KATHMANDU, "2027-10-31 06:15 UTC+05:45", "2027-10-31 07:15 UTC+05:45"),
        (NEW_YORK, "2027-10-30 20:30 EDT", "2027-10-30 21:30 EDT"),
        ("UTC", "2027-10-31 00:30 UTC", "2027-10-31 01:30 UTC"),
    ],
)
def test_a_shown_time_names_its_zone(zone: str, summer: str, winter: str) -> None:
    with timezone.override(zone_named(zone)):
        assert moment_text(datetime(2027, 10, 31, 0, 30, tzinfo=UTC)) == summer
        assert moment_text(datetime(2027, 10, 31, 1, 30, tzinfo=UTC)) == winter


def test_a_stored_text_is_in_utc() -> None:
    at = datetime(2027, 3, 28, 1, 0, 7, tzinfo=UTC)
    with timezone.override(zone_named(BERLIN)), translation.override("de"), in_english():
        assert precise_moment_text(at) == "2027-03-28 01:00:07 UTC"
        assert time_text(at, seconds=True) == "01:00:07 UTC"


def test_a_stored_time_is_shown_in_the_readers_zone() -> None:
    text = "To be tested at 2027-03-28 01:00 UTC, said at 2027-03-27 23:00:07 UTC, not 2027-13-41 01:00 UTC"
    assert stored_text_shown(text) == text
    with timezone.override(zone_named(BERLIN)):
        assert stored_text_shown(text) == (
            "To be tested at 2027-03-28 03:00 CEST, said at 2027-03-28 00:00:07 CET, not 2027-13-41 01:00 UTC"
        )


@pytest.mark.parametrize(
    ("zone", "ends"),
    [(BERLIN, "2027-03-28 06:00"), (KATHMANDU, "2027-03-29 02:15"), (NEW_YORK, "2027-03-28 12:00")],
)
def test_tomorrow_begins_at_midnight_of_the_reader(zone: str, ends: str) -> None:
    now = datetime(2027, 3, 27, 22, 30, tzinfo=UTC)
    form = SilenceForm({"lasting": SilenceForm.MORNING})
    assert form.is_valid()
    with timezone.override(zone_named(zone)):
        assert f"{form.ends_at(now).astimezone(UTC):%Y-%m-%d %H:%M}" == ends
