"""The page of one alarm: its lines, its acknowledgement, its assignment and its silence."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from portal.accounts import permissions
from portal.alarms import operations, queries
from portal.alarms.affected_lines import lines_behind
from portal.alarms.models import Alarm
from portal.core import clock
from portal.core.errors import Conflict, DomainError
from portal.core.reader_zone import moment_text
from portal.diagnosis.health import with_health
from portal.vll import queries as lines
from portal.web.flash_messages import result_message
from portal.web.forms.alarms import AcknowledgeForm, AssignForm, SilenceForm
from portal.web.page_guard import SignedInRequest, requires
from portal.web.pagination import Page, newest_first
from portal.web.views import noc_overview

UNPROCESSABLE = 422
BEFORE_SHOWN = 10


@requires(permissions.may_run_the_network)
@require_http_methods(["GET", "HEAD"])
def page(request: SignedInRequest, alarm_id: UUID) -> HttpResponse:
    """Show the alarm. ``?after=`` pages through its lines."""
    return _page(request, _alarm(alarm_id))


@requires(permissions.may_run_the_network)
@require_POST
def acknowledge(request: SignedInRequest, alarm_id: UUID) -> HttpResponse:
    """Acknowledge the alarm with ``note``, which may be empty.

    The list's button has no note and sends ``back=list``.
    """
    alarm, form = _alarm(alarm_id), AcknowledgeForm(request.POST)
    if not form.is_valid():
        return _page(request, alarm, acknowledging=form)
    with result_message(request, done=_("The alarm is acknowledged.")):
        note = form.cleaned_data["note"]
        operations.alarm_acknowledge(alarm=alarm, user=request.user, note=note, now=clock.now())
    return _back(request, alarm)


@requires(permissions.may_run_the_network)
@require_POST
def unacknowledge(request: SignedInRequest, alarm_id: UUID) -> HttpResponse:
    alarm = _alarm(alarm_id)
    with result_message(request, done=_("The acknowledgement is undone.")):
        operations.alarm_unacknowledge(alarm=alarm)
    return _back(request, alarm)


@requires(permissions.may_run_the_network)
@require_POST
def assign(request: SignedInRequest, alarm_id: UUID) -> HttpResponse:
    """Assign the alarm to the user named in ``to``; "" removes the assignment."""
    alarm, form = _alarm(alarm_id), AssignForm(request.POST)
    if form.is_valid():
        to = form.cleaned_data["to"]
        try:
            operations.alarm_assign(alarm=alarm, to=to)
        except Conflict as error:
            messages.error(request, error.sentence)
            return _back(request, alarm)
        except DomainError as error:
            form.add_error(error.field, error.sentence)
        else:
            done = (
                _("The alarm is assigned to %(name)s.") % {"name": to}
                if to
                else _("The alarm is no longer assigned to anybody.")
            )
            messages.success(request, done)
            return _back(request, alarm)
    return _page(request, alarm, assigning=form)


@requires(permissions.may_run_the_network)
@require_POST
def silence(request: SignedInRequest, alarm_id: UUID) -> HttpResponse:
    """Silence the alarm. ``lasting`` is the duration; ``until`` is read where ``lasting`` selects a time."""
    alarm, form, now = _alarm(alarm_id), SilenceForm(request.POST), clock.now()
    if form.is_valid():
        until = form.ends_at(now)
        try:
            operations.alarm_silence(alarm=alarm, user=request.user, until=until, now=now)
        except Conflict as error:
            messages.error(request, error.sentence)
            return _back(request, alarm)
        except DomainError as error:
            form.add_error(error.field, error.sentence)
        else:
            messages.success(request, _("The alarm is silent until %(at)s.") % {"at": moment_text(until)})
            return _back(request, alarm)
    return _page(request, alarm, silencing=form)


@requires(permissions.may_run_the_network)
@require_POST
def unsilence(request: SignedInRequest, alarm_id: UUID) -> HttpResponse:
    alarm = _alarm(alarm_id)
    with result_message(request, done=_("The alarm is shown again.")):
        operations.alarm_unsilence(alarm=alarm)
    return _back(request, alarm)


def _back(request: SignedInRequest, alarm: Alarm) -> HttpResponse:
    """Return to the page with the button: the list, which htmx receives immediately, or the alarm's page."""
    if request.POST.get("back") != "list":
        return redirect("web:noc-alarm", alarm_id=alarm.pk)
    if request.htmx:
        return noc_overview.alarm_list(request)
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
    """Return the alarm's page; 422 with a form that has errors."""
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
    return render(request, "noc/alarm.html", context, status=UNPROCESSABLE if wrong else None)


def _lines(request: SignedInRequest, alarm: Alarm) -> Page | None:
    """Return the lines that the alarm affects now; None for a cleared alarm, which only has stored lines."""
    if alarm.cleared_at is not None or not alarm.lines:
        return None
    behind = lines.vlls(request.user).filter(pk__in=lines_behind(alarm.kind, alarm.object).values("pk"))
    found = newest_first(behind, by="created_at", after=request.GET.get("after", ""))
    with_health(found.rows)
    return found
