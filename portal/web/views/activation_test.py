"""The pages to order an activation test of a line, to call it off, and to print its result."""

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from portal.accounts import permissions
from portal.accounts.models import User
from portal.core import clock
from portal.core.errors import DomainError
from portal.vll.models import ActivationTest, Vll
from portal.vll.operations import activation_test_call_off, activation_test_order, activation_test_schedule
from portal.web.flash_messages import result_message
from portal.web.forms.activation_test import ActivationTestForm
from portal.web.page_guard import SignedInRequest, requires, visible_vll

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
    is_order = request.method == "POST"
    form, status = ActivationTestForm(request.POST if is_order else None), None
    if is_order:
        if form.is_valid() and (done := _ordered(request.user, vll, form)):
            messages.success(request, done)
            return redirect("web:vll", vll_id=vll.pk)
        status = UNPROCESSABLE
    return render(request, "vll/start_activation_test.html", {"vll": vll, "form": form}, status=status)


def _ordered(user: User, vll: Vll, form: ActivationTestForm) -> str:
    """Order the test, and return the message for the user.

    If the order is refused, return "", and add the error to the form.
    """
    at, now = form.cleaned_data["at"], clock.now()
    try:
        if at is None:
            activation_test_order(user=user, vll=vll, now=now)
            return _("The line is being tested.")
        activation_test_schedule(user=user, vll=vll, at=at, now=now)
        return _("The test is scheduled.")
    except DomainError as error:
        form.refuse(error)
        return ""


@requires(permissions.may_order, of=_visible_test)
@require_POST
def call_off(request: SignedInRequest, test: ActivationTest) -> HttpResponse:
    """Call off a scheduled test."""
    with result_message(request, done=_("The test is cancelled.")):
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
