"""The page of a router: state, contents, and the NOC's actions."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from portal.accounts import permissions
from portal.allocation.cpu_core_bookings import core_use_of
from portal.allocation.packet_capacity import calibration_of, calibration_read, transport_costs
from portal.core import clock
from portal.core.errors import DomainError
from portal.events.models import Event
from portal.inventory.certificates import certificates_revoke, enrolment_offer
from portal.inventory.models import FRESH, Router
from portal.inventory.models.router import LONGEST_REASON
from portal.inventory.queries import Text, interface_missing, links_with_observed_mtu, mtu_mismatch
from portal.vll.convergence.requests import generation_adopt_request
from portal.vll.models import Attempt, VllEnd, VllTombstone
from portal.vll.router_operations.actions import (
    end_rebuild_request,
    router_calibration_set,
    router_declare_alive,
    router_declare_dead,
    router_lock_set,
    router_maintenance_set,
    router_retry,
)
from portal.vll.router_operations.freeze import freeze_acknowledge, freeze_of, router_freeze, router_unfreeze
from portal.vll.states import TERMINAL_LIFECYCLES
from portal.web.fields.base import TablerForm
from portal.web.page.badges import END_COUNTS
from portal.web.page.base import SignedInRequest, requires, result_message
from portal.web.page.list_filters import in_order
from portal.web.page.sparklines import router_loss_rows

_HOURS = (1, 2, 4, 8, 24, 72, 168)


def _lengths() -> list[tuple[int, str]]:
    return [(n, ngettext("%(n)s hour", "%(n)s hours", n) % {"n": n}) for n in _HOURS]


class FreezeForm(TablerForm):
    """The form to freeze a router, with the reason and the duration in hours."""

    reason = forms.CharField(
        label=_("Why"),
        max_length=LONGEST_REASON,
        error_messages={"required": _("Enter the reason for the freeze.")},
    )
    hours = forms.TypedChoiceField(label=_("For"), coerce=int, choices=_lengths, initial=2)


class DeadForm(TablerForm):
    """The form to declare a router dead, with the reason."""

    reason = forms.CharField(
        label=_("Why it will not come back"),
        max_length=500,
        error_messages={"required": _("Give a reason why the router is dead: it is kept.")},
    )


class CalibrationForm(TablerForm):
    """The form to accept the output of a calibration. Its errors contain the reasons for a refusal."""

    printed = forms.CharField(widget=forms.Textarea(attrs={"rows": 4}))
    accept_affected = forms.BooleanField(
        label=_("Even if its lines have then booked more than its cores"), required=False
    )


# The maximum length of each list. The counts include all ends.
SHOWN = 50


def contents_of(router: Router) -> dict[str, Any]:
    """Return the context with the ends on ``router`` and their problems.

    * ``statuses``: for each answer (status), the number of ends with this newest answer.
    * ``ends``: the number of all ends.
    * ``leaving``: the number of removed or moved ends whose removal the router has not confirmed.
    * ``quarantined``: ends that the agent has created but that are not part of its intent.
    * ``drift``: the differences between VPP and the state that the agent has set.
    * ``contested``: differences that come back after each repair.
    """
    live = VllEnd.objects.filter(port__router=router).exclude(vll__lifecycle__in=TERMINAL_LIFECYCLES)
    counted = dict(live.values_list("status").annotate(ends=Count("pk")).order_by("status"))
    # The rows are not sorted here. With ORDER BY, PostgreSQL would read all lines in the sorted order if few
    # ends match.
    shown = live.select_related("vll", "port").order_by()
    answered = router.attempts.filter(outcome=Attempt.Outcome.ANSWERED).order_by("-id").first()
    return {
        "statuses": [(END_COUNTS.get(str(status), str(status)), count) for status, count in counted.items()],
        "ends": sum(counted.values()),
        "leaving": VllTombstone.objects.filter(router=router).exclude(status=VllEnd.Status.REMOVED).count(),
        "quarantined": _quarantined(answered),
        "answered_at": answered.finished_at if answered else None,
        "conflicts": list(shown.filter(status=VllEnd.Status.CONFLICT)[:SHOWN]),
        "drift": [_difference(end, each) for end in shown.exclude(drift=[])[:SHOWN] for each in end.drift],
        "contested": [
            _difference(end, each) for end in shown.exclude(contested=[])[:SHOWN] for each in end.contested
        ],
        "vlan_losses": list(shown.filter(vlan_loss__isnull=False)[:SHOWN]),
        "cores": core_use_of([router])[router.pk] if router.has_agent else None,
    }


def _quarantined(answered: Attempt | None) -> list[dict[str, Any]]:
    answer = answered.answer if answered else {}
    return list(answer.get("quarantined", []))[:SHOWN]


def _difference(end: VllEnd, found: dict[str, Any]) -> dict[str, Any]:
    """Return a difference. ``desired``: the value that the agent has set. ``actual``: the value in VPP."""
    names = ("object", "field", "desired", "actual")
    texts = {name: str(found.get(name, "–")) for name in names}
    return {"end": end, "repairs": found.get("repairs", 0), **texts}


ATTEMPTS_SHOWN = 10
EVENTS_SHOWN = 50
UNPROCESSABLE = 422


# For each button: the operation, and the message for the user.
_ACTIONS: dict[str, tuple[Callable[..., object], Text]] = {
    "maintenance-begin": (
        partial(router_maintenance_set, on=True),
        _("The maintenance has begun: %(router)s takes no new lines."),
    ),
    "maintenance-end": (
        partial(router_maintenance_set, on=False),
        _("The maintenance is over: %(router)s takes new lines again."),
    ),
    "hold": (
        partial(router_lock_set, on=True),
        _("%(router)s is locked: nothing is sent to it until the lock is released."),
    ),
    "release": (partial(router_lock_set, on=False), _("%(router)s is released and catches up.")),
    "unfreeze": (
        router_unfreeze,
        _("The freeze of %(router)s ends as soon as its agent gets the request."),
    ),
    "freeze-looked": (freeze_acknowledge, _("%(router)s gets its wanted configuration again.")),
    "retry": (router_retry, _("%(router)s is being queried again. Its answer appears below.")),
    "reconcile": (
        generation_adopt_request,
        _("Reconciliation is requested; the events below will show the result."),
    ),
}


@requires(permissions.may_run_the_network)
def page(request: SignedInRequest, router_id: int) -> HttpResponse:
    """Show a router, which may be retired. ``?after=`` is the cursor for the pages of its ends."""
    return _page(request, _router(router_id))


@requires(permissions.may_run_the_network)
@require_POST
def actions(request: SignedInRequest, router_id: int) -> HttpResponse:
    """Perform the action ``do``, which is the name of a button."""
    router, action = _router(router_id), _ACTIONS.get(request.POST.get("do", ""))
    if action is None:
        return HttpResponse(status=400)
    do, done = action
    with result_message(request, done=str(done) % {"router": router}):
        do(router=router, user=request.user, now=clock.now())
    return redirect("web:noc-router", router_id=router.pk)


@requires(permissions.may_run_the_network)
@require_POST
def rebuild(request: SignedInRequest, router_id: int, vll_id: UUID, side: str) -> HttpResponse:
    """Request that the agent deletes the sub-interface of an end and creates it again."""
    router = _router(router_id)
    ends = VllEnd.objects.select_related("port").filter(port__router=router)
    end_rebuild_request(
        end=get_object_or_404(ends, vll=vll_id, side=side), user=request.user, now=clock.now()
    )
    messages.success(request, gettext("The rebuild is requested; the events below confirm it."))
    return redirect("web:noc-router", router_id=router.pk)


@requires(permissions.may_remove_from_the_network)
@require_POST
def dead(request: SignedInRequest, router_id: int) -> HttpResponse:
    """Declare a router dead, with ``reason``. If the router is already declared dead, withdraw the
    declaration.

    Without a reason, the response has status 422 and shows the page with the error.
    """
    router, form = _router(router_id), DeadForm(request.POST, auto_id="dead-%s")
    if router.dead_since is not None:
        router_declare_alive(router=router, user=request.user, now=clock.now())
        messages.success(request, gettext("Removals wait for it again."))
    elif form.is_valid():
        router_declare_dead(router=router, user=request.user, now=clock.now(), **form.cleaned_data)
        messages.success(request, gettext("Removals do not wait for it any more."))
    else:
        return _page(request, router, dead=form)
    return redirect("web:noc-router", router_id=router.pk)


@requires(permissions.may_run_the_network)
@require_POST
def freeze(request: SignedInRequest, router_id: int) -> HttpResponse:
    """Freeze a router for ``hours``, with ``reason``.

    If ``hours`` or ``reason`` is missing, the response has status 422 and shows the page with the error.
    """
    router, form = _router(router_id), FreezeForm(request.POST)
    if not form.is_valid():
        return _page(request, router, freezing=form)
    done = gettext("%(router)s will be frozen as soon as its agent gets the request, within seconds.")
    with result_message(request, done=done % {"router": router}):
        until = clock.now() + timedelta(hours=form.cleaned_data["hours"])
        router_freeze(
            router=router,
            user=request.user,
            now=clock.now(),
            reason=form.cleaned_data["reason"],
            until=until,
        )
    return redirect("web:noc-router", router_id=router.pk)


@requires(permissions.may_enrol_routers)
@require_POST
@never_cache
def enrolment(request: SignedInRequest, router_id: int) -> HttpResponse:
    """Create an enrolment token for a router. Only this response shows the token."""
    router = _router(router_id)
    try:
        token = enrolment_offer(router=router, user=request.user, now=clock.now())
    except DomainError as error:
        messages.error(request, error.sentence)
        return redirect("web:noc-router", router_id=router.pk)
    return _page(request, router, token=token)


@requires(permissions.may_run_the_network)
@require_POST
def revoke(request: SignedInRequest, router_id: int) -> HttpResponse:
    """Revoke the router's certificate with the serial number ``serial``."""
    router = _router(router_id)
    serial = request.POST.get("serial", "")
    if certificates_revoke(router=router, serial=serial, now=clock.now()):
        messages.success(request, gettext("The certificate is revoked."))
    return redirect("web:noc-router", router_id=router.pk)


@requires(permissions.may_run_the_network)
@require_POST
def calibration(request: SignedInRequest, router_id: int) -> HttpResponse:
    """Accept or remove the calibration of a router.

    If ``do`` is ``take``, the calibration in ``printed`` is stored (the output of
    ``longline-agent calibrate -json``). If ``do`` is ``return``, the calibration is removed.
    """
    router, form = _router(router_id), CalibrationForm(request.POST, auto_id="calibration-%s")
    done = {
        "take": gettext("Admission now uses the measured figures."),
        "return": gettext("Admission uses the default table again."),
    }
    do, printed = request.POST.get("do", ""), request.POST.get("printed", "")
    if do not in done:
        return HttpResponse(status=400)
    try:
        router_calibration_set(
            router=router,
            calibration=calibration_read(printed, router=router.name) if do == "take" else None,
            accept_affected="accept_affected" in request.POST,
            user=request.user,
            now=clock.now(),
        )
    except DomainError as error:
        if do == "take":
            form.add_error("printed", error.sentence)
            return _page(request, router, calibrating=form)
        messages.error(request, error.sentence)
    else:
        messages.success(request, done[do])
    return redirect("web:noc-router", router_id=router.pk)


def _router(router_id: int) -> Router:
    rows = Router.objects.select_related("site", "observed", "convergence", "agent_clock")
    return get_object_or_404(rows, pk=router_id)


def _page(
    request: SignedInRequest,
    router: Router,
    *,
    token: str = "",
    freezing: FreezeForm | None = None,
    dead: DeadForm | None = None,
    calibrating: CalibrationForm | None = None,
) -> HttpResponse:
    """Return the router's page.

    If a form was refused, the status is 422, and the page shows the form with the entered values and errors.
    """
    refused = freezing or dead or calibrating
    links = links_with_observed_mtu()
    touching = links.filter(a_router=router) | links.filter(z_router=router)
    losses, own = router_loss_rows(router=router, now=clock.now())
    ends = VllEnd.objects.filter(port__router=router).exclude(vll__lifecycle__in=TERMINAL_LIFECYCLES)
    freeze = freeze_of(router)
    context = {
        "router": router,
        "may_enrol": permissions.may_enrol_routers(request.user),
        "may_declare_dead": permissions.may_remove_from_the_network(request.user),
        "observed": getattr(router, "observed", None),
        "convergence": getattr(router, "convergence", None),
        "agent_clock": getattr(router, "agent_clock", None),
        "fresh_since": clock.now() - FRESH,
        "token": token,
        "freeze": freeze,
        "freeze_is_ending": freeze is not None and freeze.is_ending(clock.now()),
        "freeze_form": freezing or FreezeForm(initial={"reason": freeze.reason} if freeze else None),
        "dead_form": dead or DeadForm(auto_id="dead-%s"),
        "calibration_form": calibrating or CalibrationForm(auto_id="calibration-%s"),
        "attempts": router.attempts.order_by("-id")[:ATTEMPTS_SHOWN],
        "ends": in_order(
            ends.select_related("vll__customer", "port"),
            by=("port__interface", "pk"),
            after=request.GET.get("after", ""),
        ),
        "contents": contents_of(router),
        "links": [
            {"link": link, "mismatch": mtu_mismatch(link), "missing": interface_missing(link)}
            for link in touching.order_by("pk")
        ],
        "losses": losses,
        "own": own,
        "paths": router.observed_paths.order_by("remote", "local"),
        "paired": router.observed_interfaces.exclude(linux_cp="").order_by("name"),
        "events": Event.objects.filter(router_id=router.pk).order_by("-id")[:EVENTS_SHOWN],
        "calibration": calibration_of(router),
        "costs": transport_costs(router),
        "certificates": router.certificates.order_by("-issued_at"),
    }
    return render(request, "noc/routers/router.html", context, status=UNPROCESSABLE if refused else None)
