"""The alarms that are raised now, their history, and the forms for both."""

from collections.abc import Callable, Iterator
from datetime import datetime, time, timedelta
from functools import partial
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django import forms
from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST

from portal.accounts import permissions
from portal.accounts.models import User
from portal.accounts.people import noc_staff
from portal.alarms import operations, queries, sentences
from portal.alarms.affected_lines import lines_behind
from portal.alarms.kinds import Kind
from portal.alarms.models import Alarm
from portal.core import clock
from portal.core.db.replica import from_replica
from portal.core.db.row_conditions import Page
from portal.core.errors import Conflict, DomainError
from portal.core.reader_texts import moment_text
from portal.diagnosis.health import with_health
from portal.inventory.models import Router
from portal.vll import queries as lines
from portal.web.fields.base import LookupField, TablerForm
from portal.web.fields.moments import MomentField
from portal.web.page.base import SignedInRequest, requires, result_message
from portal.web.page.list_filters import newest_first

_MORNING = time(8, 0)
# The maximum number of alarms in each list. The counts include all alarms, and the history lists all.
SHOWN = 50


@requires(permissions.may_run_the_network)
def overview(request: SignedInRequest) -> HttpResponse:
    """Show the active alarms, unacknowledged alarms first, and the kinds of alarms that are not active."""
    return _alarms(request, "noc/alarms/_alarms.html" if request.htmx else "noc/alarms/overview.html")


def alarm_list(request: SignedInRequest) -> HttpResponse:
    """Return the live part of the page. htmx gets it after an action on an alarm in the list."""
    return _alarms(request, "noc/alarms/_alarms.html", with_messages=True)


def _alarms(request: SignedInRequest, template: str, **context: bool) -> HttpResponse:
    alarms = render_to_string("noc/alarms/_list.html", _context(), request)
    return render(request, template, {"alarms": alarms, **context})


def _context() -> dict[str, Any]:
    now = clock.now()
    up, last = queries.tally(now), queries.last_round()
    unacknowledged = sum(each.unacknowledged for each in up)
    acknowledged = sum(each.acknowledged for each in up)
    silenced = sum(each.silenced for each in up)
    unchecked = last.unchecked_kinds if last else []
    return {
        "last": last,
        "late": queries.is_late(last, now),
        "unchecked": [sentences.kind_label(kind) for kind in unchecked],
        "unacknowledged": queries.unacknowledged(now)[:SHOWN] if unacknowledged else [],
        "unacknowledged_count": unacknowledged,
        "acknowledged": queries.acknowledged(now)[:SHOWN] if acknowledged else [],
        "acknowledged_count": acknowledged,
        "silenced": queries.silenced(now)[:SHOWN] if silenced else [],
        "silenced_count": silenced,
        "shown": SHOWN,
        "in_order": [
            kind.label for kind in Kind if kind not in {each.kind for each in up} and kind not in unchecked
        ]
        if last
        else [],
    }


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
        if hours := {self.HOUR: 1, self.SHIFT: 8}.get(chosen):
            return now + timedelta(hours=hours)
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


UNPROCESSABLE = 422
BEFORE_SHOWN = 10


@requires(permissions.may_run_the_network)
@require_http_methods(["GET", "HEAD"])
def page(request: SignedInRequest, alarm_id: UUID) -> HttpResponse:
    """Show an alarm. ``?after=`` is the cursor for the pages of its lines."""
    return _page(request, _alarm(alarm_id))


@requires(permissions.may_run_the_network)
@require_POST
def acknowledge(request: SignedInRequest, alarm_id: UUID) -> HttpResponse:
    """Acknowledge an alarm, with a note that may be empty.

    The button in the list of alarms sends no note, and sends ``back=list``.
    """
    alarm, form = _alarm(alarm_id), AcknowledgeForm(request.POST)
    if not form.is_valid():
        return _page(request, alarm, acknowledging=form)
    with result_message(request, done=gettext("The alarm is acknowledged.")):
        note = form.cleaned_data["note"]
        operations.alarm_acknowledge(alarm=alarm, user=request.user, note=note, now=clock.now())
    return _back(request, alarm)


@requires(permissions.may_run_the_network)
@require_POST
def unacknowledge(request: SignedInRequest, alarm_id: UUID) -> HttpResponse:
    alarm = _alarm(alarm_id)
    with result_message(request, done=gettext("The acknowledgement is undone.")):
        operations.alarm_unacknowledge(alarm=alarm)
    return _back(request, alarm)


@requires(permissions.may_run_the_network)
@require_POST
def assign(request: SignedInRequest, alarm_id: UUID) -> HttpResponse:
    """Assign an alarm to the user in ``to``. If ``to`` is "", remove the assignment."""
    alarm, form = _alarm(alarm_id), AssignForm(request.POST)
    if form.is_valid():
        done = gettext("The alarm is no longer assigned to anybody.")
        if to := form.cleaned_data["to"]:
            done = gettext("The alarm is assigned to %(name)s.") % {"name": to}
        if _is_done(request, form, partial(operations.alarm_assign, alarm=alarm, to=to), done):
            return _back(request, alarm)
    return _page(request, alarm, assigning=form)


@requires(permissions.may_run_the_network)
@require_POST
def silence(request: SignedInRequest, alarm_id: UUID) -> HttpResponse:
    """Silence an alarm. ``lasting`` is the duration. If the user chose an end time instead of a duration,
    ``until`` is the end.
    """
    alarm, form, now = _alarm(alarm_id), SilenceForm(request.POST), clock.now()
    if form.is_valid():
        until = form.ends_at(now)
        silenced = partial(operations.alarm_silence, alarm=alarm, user=request.user, until=until, now=now)
        done = gettext("The alarm is silent until %(at)s.") % {"at": moment_text(until)}
        if _is_done(request, form, silenced, done):
            return _back(request, alarm)
    return _page(request, alarm, silencing=form)


@requires(permissions.may_run_the_network)
@require_POST
def unsilence(request: SignedInRequest, alarm_id: UUID) -> HttpResponse:
    alarm = _alarm(alarm_id)
    with result_message(request, done=gettext("The alarm is shown again.")):
        operations.alarm_unsilence(alarm=alarm)
    return _back(request, alarm)


def _is_done(request: SignedInRequest, form: TablerForm, operation: Callable[[], object], done: str) -> bool:
    """Perform the operation. Return False if it refuses a value of the form, which then has the error.

    A message for the user says ``done``, or that the alarm has changed meanwhile.
    """
    try:
        operation()
    except Conflict as error:
        messages.error(request, error.sentence)
    except DomainError as error:
        form.refuse(error)
        return False
    else:
        messages.success(request, done)
    return True


def _back(request: SignedInRequest, alarm: Alarm) -> HttpResponse:
    """Return the response that leads back to the page with the button: the list or the alarm's page.

    A request of htmx from the list gets the updated list.
    """
    if request.POST.get("back") != "list":
        return redirect("web:noc-alarm", alarm_id=alarm.pk)
    if request.htmx:
        return alarm_list(request)
    return redirect("web:noc")


def _alarm(alarm_id: UUID) -> Any:
    found = queries.with_operator_state(Alarm.objects.all(), clock.now())
    return get_object_or_404(found, pk=alarm_id)


def _page(
    request: SignedInRequest,
    alarm: Any,
    *,
    acknowledging: AcknowledgeForm | None = None,
    assigning: AssignForm | None = None,
    silencing: SilenceForm | None = None,
) -> HttpResponse:
    """Return the alarm's page. Its status is 422 if one of the forms has errors."""
    wrong = acknowledging or assigning or silencing
    said = getattr(alarm, "operator_state", None)
    person = said.assigned_to.username if said and said.assigned_to else ""
    context = {
        "alarm": alarm,
        "said": said,
        "acknowledge_form": acknowledging or AcknowledgeForm(),
        "assign_form": assigning or AssignForm(initial={"to": person}),
        "silence_form": silencing or SilenceForm(initial={"lasting": SilenceForm.HOUR}),
        "mine": person == request.user.username,
        "page": _lines(request, alarm),
        "earlier": Alarm.objects.filter(kind=alarm.kind, object=alarm.object)
        .exclude(pk=alarm.pk)
        .select_related("operator_state")
        .order_by("-raised_at", "-id")[:BEFORE_SHOWN],
    }
    return render(request, "noc/alarms/alarm.html", context, status=UNPROCESSABLE if wrong else None)


def _lines(request: SignedInRequest, alarm: Alarm) -> Page | None:
    """Return a page of the lines that the alarm affects now.

    Return None if the alarm affects no lines or is cleared.
    """
    if alarm.cleared_at is not None or not alarm.lines:
        return None
    behind = lines.vlls(request.user).filter(pk__in=lines_behind(alarm.kind, alarm.object).values("pk"))
    found = newest_first(behind, by="created_at", after=request.GET.get("after", ""))
    with_health(found.rows)
    return found


@requires(permissions.may_run_the_network)
def alarm_history(request: SignedInRequest) -> HttpResponse:
    """Show the history of alarms, filtered by ``?kind=&state=&router=&since=&until=``.

    ``?after=`` is the cursor for further pages.
    """
    form = AlarmHistoryForm(request.GET)
    query = form.cleaned_data if form.is_valid() else {}
    rows = _narrowed(Alarm.objects.select_related("operator_state"), query)
    after = request.GET.get("after", "")
    context = {
        "form": form,
        "page": from_replica(request, lambda: newest_first(rows, by="raised_at", after=after)),
        "keep": urlencode({name: text for name in _kept(form) if (text := request.GET.get(name))}),
    }
    return render(
        request, "noc/alarms/alarm_history.html", context, status=None if form.is_valid() else UNPROCESSABLE
    )


def _kept(form: AlarmHistoryForm) -> Iterator[str]:
    """Yield the names of the form's parameters, which links to other pages keep.

    A field with a time also has parameters for its time zone and its occurrence.
    """
    for name, field in form.fields.items():
        yield name
        if isinstance(field, MomentField):
            yield from (f"{name}_zone", f"{name}_which")


def _narrowed(rows: QuerySet[Alarm], query: dict[str, Any]) -> QuerySet[Alarm]:
    if kind := query.get("kind"):
        rows = rows.filter(kind=kind)
    if state := query.get("state"):
        rows = rows.filter(cleared_at__isnull=state == AlarmHistoryForm.UP)
    if name := query.get("router"):
        rows = rows.filter(
            routers__overlap=list(Router.objects.filter(name=name).values_list("pk", flat=True))
        )
    return rows.filter(_up_in(query.get("since"), query.get("until")))


def _up_in(since: datetime | None, until: datetime | None) -> Q:
    """Return a filter for alarms that were active at any time in the period."""
    up = Q(raised_at__lt=until) if until else Q()
    return up & (Q(cleared_at__isnull=True) | Q(cleared_at__gt=since)) if since else up
