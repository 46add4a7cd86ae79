"""The page to remove a VLL, now or after a cooling-off. An immediate removal needs a second confirmation."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal.accounts import permissions
from portal.core import clock
from portal.core.errors import DomainError
from portal.core.reader_zone import moment_text
from portal.core.units import lasting_text
from portal.vll.models import Vll
from portal.vll.operations import agreed_cooling_off, order_delete
from portal.vll.states import IN_SERVICE
from portal.web.page.page_guard import SignedInRequest, requires, visible_vll

_AT_ONCE = timedelta(0)
_OTHERS = (timedelta(days=1), timedelta(days=7), timedelta(days=30))


@dataclass(frozen=True, slots=True)
class CoolingOff:
    """A cooling-off that the user can choose. ``value``: its seconds, as the form sends them.

    ``agreed``: whether this is the cooling-off that the customer or the settings define.
    """

    lasts: timedelta
    until: datetime
    agreed: bool

    @property
    def value(self) -> str:
        return str(int(self.lasts.total_seconds()))

    @property
    def at_once(self) -> bool:
        return self.lasts == _AT_ONCE

    @property
    def text(self) -> str:
        """The duration as text, such as ``7 days`` or ``2 h``."""
        days, rest = divmod(self.lasts, timedelta(days=1))
        if rest:
            return lasting_text(self.lasts.total_seconds())
        return ngettext("{n} day", "{n} days", days).format(n=days)


@requires(permissions.may_order, of=visible_vll)
def remove(request: SignedInRequest, vll: Vll) -> HttpResponse:
    """Ask for confirmation (GET), or order the removal (POST).

    For an immediate removal, ``for_good`` must be set too. Without it, the status is 422. If the removal is
    refused, the status is 409.
    """
    now, refusal, unsure = clock.now(), "", False
    choices = _choices(vll, now)
    chosen = next((each for each in choices if each.value == request.POST.get("cooling_off")), choices[0])
    if request.method == "POST":
        unsure = chosen.at_once and not request.POST.get("for_good")
        if not unsure:
            try:
                order_delete(user=request.user, vll=vll, now=now, cooling_off=chosen.lasts)
            except DomainError as error:
                refusal = error.sentence
            else:
                messages.success(request, _confirmation(chosen))
                return redirect("web:vll", vll_id=vll.pk)
    context = {"vll": vll, "choices": choices, "chosen": chosen, "refusal": refusal, "unsure": unsure}
    return render(request, "vll/remove.html", context, status=409 if refusal else 422 if unsure else None)


def _choices(vll: Vll, now: datetime) -> list[CoolingOff]:
    """Return the cooling-offs that the user can choose. The agreed cooling-off is first.

    If the line is not in service, or already in its cooling-off, only an immediate removal is possible.
    """
    if vll.lifecycle not in IN_SERVICE:
        return [CoolingOff(_AT_ONCE, now, agreed=False)]
    agreed = agreed_cooling_off(vll.customer)
    lasting = [agreed, *(each for each in (*_OTHERS, _AT_ONCE) if each != agreed)]
    return [CoolingOff(each, now + each, agreed=each == agreed) for each in lasting]


def _confirmation(chosen: CoolingOff) -> str:
    if chosen.at_once:
        return _("The removal is ordered.")
    return _("The traffic is being stopped. You can undo the removal here until {until}.").format(
        until=moment_text(chosen.until)
    )
