"""The pages with the history of an inventory object, a person or a webhook."""

from collections.abc import Callable

from django.http import Http404, HttpResponse
from django.shortcuts import render

from portal.accounts import permissions
from portal.accounts.models import Customer, User
from portal.allocation.models import ReservedVniRange
from portal.audit.history import Change, customer_history, object_history, person_history, router_history
from portal.inventory.models import BackboneLink, Port, Router, Site
from portal.notifications.models import Webhook
from portal.web.inventory_kinds import CUSTOMERS, LINKS, PORTS, ROUTERS, SITES, VNI_RANGES, Kind
from portal.web.page_guard import SignedInRequest, requires

MODELS = {
    SITES.slug: Site,
    PORTS.slug: Port,
    LINKS.slug: BackboneLink,
    VNI_RANGES.slug: ReservedVniRange,
}


@requires(permissions.may_run_the_network)
def history(request: SignedInRequest, kind: Kind, **ids: int) -> HttpResponse:
    """Show the history of an inventory object, which may be removed."""
    pk = ids[f"{kind.keyword}_id"]
    if kind is CUSTOMERS:
        return _page(request, kind, Customer, customer_history, pk)
    if kind is ROUTERS:
        return _page(request, kind, Router, router_history, pk)
    model = MODELS[kind.slug]
    return _page(request, kind, model, lambda found: object_history(model, found), pk)


@requires(permissions.may_run_the_network)
def person(request: SignedInRequest, user_id: int) -> HttpResponse:
    """Show the history of an account, its memberships and its sign-in methods."""
    return _page(request, None, User, person_history, user_id)


@requires(permissions.may_run_the_network)
def webhook(request: SignedInRequest, webhook_id: int) -> HttpResponse:
    """Show the history of a webhook, which may be removed."""
    return _page(request, None, Webhook, lambda found: object_history(Webhook, found), webhook_id)


def _page(
    request: SignedInRequest, kind: Kind | None, model: type, read: Callable[[int], list[Change]], pk: int
) -> HttpResponse:
    found = read(pk)
    row = model.objects.filter(pk=pk).first()  # type: ignore[attr-defined]
    if row is None and not found:
        raise Http404
    context = {"kind": kind, "row": row or pk, "history": found}
    return render(request, "noc/history.html", context)
