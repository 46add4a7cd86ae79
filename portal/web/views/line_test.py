"""A line's test with frames as a page of its own, to be printed and kept."""

from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render

from portal.accounts import permissions
from portal.accounts.models import User
from portal.vll.models import LineTest, Vll
from portal.web.access_control import SignedInRequest, requires


def _visible_test(user: User, vll_id: UUID, test_id: UUID) -> LineTest:
    """One that has ended, of a line that this user may know of; else 404."""
    ended = LineTest.objects.exclude(state=LineTest.State.WAITING).select_related("vll__customer")
    return get_object_or_404(ended, pk=test_id, vll__in=Vll.objects.visible_to(user).filter(pk=vll_id))


@requires(permissions.may_see, of=_visible_test)
def certificate(request: SignedInRequest, test: LineTest) -> HttpResponse:
    """What was sent, what arrived, how long it took, and over what."""
    return render(request, "vll/line_test.html", {"test": test, "vll": test.vll})
