"""The lists of ports, orders and routers, and the search for lines and other objects."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from portal.accounts import permissions
from portal.accounts.models import User
from portal.core import clock
from portal.diagnosis.health import with_health
from portal.inventory.interfaces import with_link_speed
from portal.inventory.kinds import found
from portal.inventory.models import FRESH, Port, Router
from portal.inventory.queries import Text, with_enrolment
from portal.vll import queries
from portal.vll.models import Vll
from portal.vll.queries import vlls_found
from portal.web.noc.inventory.inventory_kinds import CUSTOMERS, LINKS, PORTS, ROUTERS, SITES, Kind
from portal.web.page.list_filters import (
    LONGEST_SEARCH,
    filtered,
    in_order,
    newest_first,
    of_customer,
    only_of,
)
from portal.web.page.page_guard import SignedInRequest, requires


@requires(permissions.may_run_the_network)
def routers(request: SignedInRequest) -> HttpResponse:
    """Show the routers that match the search and the filters.

    A router is shown as reporting if its last report is recent enough for the status of its VLLs (FRESH).
    """
    rows = with_enrolment(Router.objects.select_related("site", "observed", "convergence"))
    matching = filtered(rows, request.GET, ROUTERS.filters)
    page = in_order(matching.rows, by=ROUTERS.by, after=request.GET.get("after", ""))
    context = {"routers": page.rows, "page": page, "filtered": matching, "fresh_since": clock.now() - FRESH}
    return render(request, "routers/routers.html", context)


@requires(permissions.may_sign_in)
def ports(request: SignedInRequest) -> HttpResponse:
    """Show the ports of the user's customers with their booked bandwidth.

    ``?customer=`` selects one customer.
    """
    rows = with_link_speed(Port.objects.visible_to(request.user).select_related("router__site", "customer"))
    customer = of_customer(request.user, request.GET)
    matching = filtered(rows, request.GET, (only_of(customer),) if customer else ())
    page = in_order(matching.rows, by=PORTS.by, after=request.GET.get("after", ""))
    return render(request, "ports/ports.html", {"ports": page.rows, "page": page, "filtered": matching})


@requires(permissions.may_sign_in)
def orders(request: SignedInRequest) -> HttpResponse:
    """Show the orders of the user's customers, newest first. ``?customer=`` selects one customer."""
    rows, customer = queries.orders(request.user), of_customer(request.user, request.GET)
    if customer is not None:
        rows = rows.filter(customer=customer)
    keep = "" if customer is None else f"customer={customer.pk}"
    page = newest_first(rows, by="ordered_at", after=request.GET.get("after", ""))
    return render(request, "orders/orders.html", {"page": page, "customer": customer, "keep": keep})


# The maximum number of results for each kind of object.
SHOWN = 20


@dataclass(frozen=True, slots=True)
class Found:
    """The results of one kind of object, each with the address of its page.

    ``more``: the address of a list with all results; "" if ``rows`` has all of them.
    """

    title: Text
    rows: list[tuple[Any, str]]
    more: str


@requires(permissions.may_sign_in)
def search(request: SignedInRequest) -> HttpResponse:
    """Show the results for ``?q=``: a name, a port, a VNI, a VLAN, or the id of a line or an order."""
    q = request.GET.get("q", "").replace("\0", "").strip()[:LONGEST_SEARCH]
    context: dict[str, Any] = {"q": q}
    if q:
        first = list(lines_found(request.user, q)[: SHOWN + 1])
        context |= {
            "vlls": with_health(first[:SHOWN]),
            "more_vlls": len(first) > SHOWN,
            "shown": SHOWN,
            "others": [each for each in others_found(request.user, q, shown=SHOWN) if each.rows],
        }
    return render(request, "search/search.html", context)


def lines_found(user: User, q: str) -> QuerySet[Vll]:
    """Return the lines that match ``q`` and that the user may see, newest first."""
    return queries.vlls(user).filter(vlls_found(q, user=user))


def others_found(user: User, q: str, *, shown: int) -> Iterable[Found]:
    """Yield the objects other than lines that match ``q`` and that the user may see.

    At most ``shown`` objects of each kind are returned.
    """
    ports = Port.objects.visible_to(user).select_related("router__site").order_by("router__name", "interface")
    yield _found(
        _("Ports"), found(ports, q), q, shown=shown, listed_at=reverse("web:ports"), page_of=_port_page
    )
    if permissions.may_run_the_network(user):
        for kind in (ROUTERS, SITES, LINKS, CUSTOMERS):
            yield _of_kind(kind, q, shown)


def _page_of(kind: Kind, row: Any) -> str:
    return reverse(kind.page or f"web:noc-{kind.slug}-change", args=[row.pk])


def _of_kind(kind: Kind, q: str, shown: int) -> Found:
    rows = found(kind.rows().order_by(*kind.by), q)
    listed_at = reverse(f"web:noc-{kind.slug}")
    page_of = partial(_page_of, kind)
    return _found(kind.title, rows, q, shown=shown, listed_at=listed_at, page_of=page_of)


def _found(
    title: Text, rows: QuerySet[Any], q: str, *, shown: int, listed_at: str, page_of: Callable[[Any], str]
) -> Found:
    first = list(rows[: shown + 1])
    return Found(
        title=title,
        rows=[(row, page_of(row)) for row in first[:shown]],
        more=f"{listed_at}?{urlencode({'q': q})}" if len(first) > shown else "",
    )


def _port_page(port: Port) -> str:
    return reverse("web:port", args=[port.pk])
