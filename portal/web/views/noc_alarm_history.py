"""The page with the history of alarms: kind, object, time, duration, and acknowledgement."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import render

from portal.accounts import permissions
from portal.alarms.models import Alarm
from portal.core.replica import from_replica
from portal.inventory.models import Router
from portal.web.forms.alarms import AlarmHistoryForm
from portal.web.forms.moments import MomentField
from portal.web.page_guard import SignedInRequest, requires
from portal.web.pagination import newest_first

UNPROCESSABLE = 422


@requires(permissions.may_run_the_network)
def page(request: SignedInRequest) -> HttpResponse:
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
        request, "noc/alarm_history.html", context, status=None if form.is_valid() else UNPROCESSABLE
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
