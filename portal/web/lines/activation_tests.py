"""Activation tests of a line: the form, the certificate, and its template tags."""

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django import template
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from portal.accounts import permissions
from portal.accounts.models import User
from portal.core import clock
from portal.core.reader_texts import decimal_text
from portal.vll.models import ActivationTest, Vll
from portal.vll.operations.activation_test_on_demand import (
    activation_test_call_off,
    activation_test_order,
    activation_test_schedule,
)
from portal.vll.sentences import activation_test_sentence, failure_sentence
from portal.web.fields.base import TablerForm
from portal.web.fields.moments import MomentField
from portal.web.page.base import SignedInRequest, requires, result_message, visible_vll


class ActivationTestForm(TablerForm):
    """The form to order a test, with its start. The largest test frame always follows from the line's MTU."""

    at = MomentField(
        label=_("When"),
        required=False,
        help_text=_("If left empty, the test starts now. At most 90 days ahead."),
    )


register = template.Library()


register.filter("outcome", activation_test_sentence)
register.filter("failure_sentence", failure_sentence)


@register.filter
def round_trip(test: ActivationTest) -> str:
    """Return a sentence with the round-trip time of small packets between the routers; "" if not measured."""
    if test.round_trip_us is None:
        return ""
    times = {name: decimal_text(test.round_trip_us[name] / 1000, 2) for name in ("min", "avg", "max")}
    return gettext("Round trip between the routers {avg} ms ({min} to {max}).").format(**times)


@register.filter
def interruption(test: ActivationTest) -> str:
    """Return a sentence with the time of the interruption. Return "" if the line was not interrupted, or if
    the interruption has not ended.
    """
    if test.interruption is None:
        return ""
    return gettext("It interrupted the line for at most {s} s, which counts as maintenance.").format(
        s=decimal_text(test.interruption.total_seconds(), 1)
    )


@register.filter
def sizes(test: ActivationTest) -> list[tuple[int | str, ...]]:
    """Return each tested frame size in bytes, smallest first, and a text such as ``98 of 100`` (received of
    sent) for each direction.
    """
    ways = {way: _by_size(test.directions.get(way, ())) for way in ("a_to_z", "z_to_a")}
    tried = sorted({size for counts in ways.values() for size in counts})
    return [(size, *(counts.get(size, "–") for counts in ways.values())) for size in tried]


def _by_size(counts: Iterable[dict[str, Any]]) -> dict[int, str]:
    return {
        count["frame"]: gettext("{received} of {sent}").format(**count)
        + (f" ({gettext('in pieces')})" if count["fragmented"] else "")
        for count in counts
    }


UNPROCESSABLE = 422


def _visible_test(user: User, vll_id: UUID, test_id: UUID) -> ActivationTest:
    """Return a test of a line that the user may see. Raises Http404."""
    lines = Vll.objects.visible_to(user).filter(pk=vll_id)
    return get_object_or_404(
        ActivationTest.objects.select_related("vll__customer"), pk=test_id, vll__in=lines
    )


@requires(permissions.may_order, of=visible_vll)
def ask(request: SignedInRequest, vll: Vll) -> HttpResponse:
    """Show the form with a warning about the interruption (GET), or order a test for now or later (POST)."""
    form = ActivationTestForm(request.POST if request.method == "POST" else None)
    if done := form.submit(partial(_order_test, user=request.user, vll=vll)):
        messages.success(request, done)
        return redirect("web:vll", vll_id=vll.pk)
    status = UNPROCESSABLE if form.is_bound else None
    return render(request, "vll/start_activation_test.html", {"vll": vll, "form": form}, status=status)


def _order_test(*, user: User, vll: Vll, at: datetime | None) -> str:
    """Order the test for ``at``, or for now if ``at`` is None. Return the message for the user."""
    if at is None:
        activation_test_order(user=user, vll=vll, now=clock.now())
        return gettext("The line is being tested.")
    activation_test_schedule(user=user, vll=vll, at=at, now=clock.now())
    return gettext("The test is scheduled.")


@requires(permissions.may_order, of=_visible_test)
@require_POST
def call_off(request: SignedInRequest, test: ActivationTest) -> HttpResponse:
    """Call off a scheduled test."""
    with result_message(request, done=gettext("The test is cancelled.")):
        activation_test_call_off(user=request.user, test=test, now=clock.now())
    return redirect("web:vll", vll_id=test.vll_id)


def _ended_test(user: User, vll_id: UUID, test_id: UUID) -> ActivationTest:
    """Return a test that has ended, of a line that the user may see. Raises Http404."""
    test = _visible_test(user, vll_id, test_id)
    if test.state in ActivationTest.OPEN:
        raise Http404
    return test


@requires(permissions.may_see, of=_ended_test)
def certificate(request: SignedInRequest, test: ActivationTest) -> HttpResponse:
    """Show the result of a test as a page to print: frames sent and received, round-trip time, and path."""
    return render(request, "vll/activation_test.html", {"test": test, "vll": test.vll})
