"""The lists of ports, orders and routers, the search, and the command palette."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from portal.accounts import permissions
from portal.accounts.models import User
from portal.core import clock
from portal.diagnosis.health import with_health
from portal.inventory.interfaces import with_link_speed
from portal.inventory.kinds import found
from portal.inventory.models import FRESH, Port, Router
from portal.inventory.queries import Text, with_enrolment
from portal.vll import queries
from portal.vll.models import Order, Vll
from portal.vll.queries import orders_found, vlls_found
from portal.vll.states import TERMINAL_LIFECYCLES
from portal.web.lines.line_progress import actions_of
from portal.web.noc.inventory.inventory_kinds import CUSTOMERS, KINDS, LINKS, PORTS, ROUTERS, SITES
from portal.web.page.base import SignedInRequest, requires
from portal.web.page.list_filters import (
    LONGEST_SEARCH,
    filtered,
    in_order,
    newest_first,
    of_customer,
    only_of,
)
from portal.web.page.navigation import pages_of


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
    yield _found(_("Ports"), ports, q, shown, listed_at="web:ports", page="web:port")
    if permissions.may_run_the_network(user):
        for kind in (ROUTERS, SITES, LINKS, CUSTOMERS):
            listed_at = f"web:noc-{kind.slug}"
            page, rows = kind.page or f"{listed_at}-change", kind.rows().order_by(*kind.by)
            yield _found(kind.title, rows, q, shown, listed_at=listed_at, page=page)


def _found(title: Text, rows: QuerySet[Any], q: str, shown: int, *, listed_at: str, page: str) -> Found:
    first = list(found(rows, q)[: shown + 1])
    return Found(
        title=title,
        rows=[(row, reverse(page, args=[row.pk])) for row in first[:shown]],
        more=f"{reverse(listed_at)}?{urlencode({'q': q})}" if len(first) > shown else "",
    )


# The maximum number of entries for each kind of object. The search page shows more.
OPTIONS_SHOWN = 5
# The minimum length of a text that searches for objects. A shorter text finds only pages and actions.
_LEAST_LETTERS = 2


@dataclass(frozen=True, slots=True)
class Option:
    """An entry of the list.

    It either links to ``url``, or presses the button with the id ``press``, which exists on every page.
    """

    title: Text
    url: str = ""
    note: Text = ""
    press: str = ""


@dataclass(frozen=True, slots=True)
class _LineAction:
    """An action on a line, which users enter as a verb and the line's name.

    ``action``: the name in ``actions_of`` of the action that must be possible for the user; "" if every user
    who can see the line may use the command.
    """

    verb: Text
    sentence: Text
    action: str
    page: str


_LINE_ACTIONS = (
    _LineAction(_("Change"), _("Change %(line)s"), "change", "web:vll-change"),
    _LineAction(_("Suspend"), _("Suspend %(line)s"), "suspend", "web:vll-suspend"),
    _LineAction(_("Remove"), _("Remove %(line)s"), "remove", "web:vll-remove"),
    _LineAction(_("Test"), _("Test %(line)s"), "test", "web:vll-test"),
    _LineAction(_("Diagnose"), _("Diagnose %(line)s"), "", "web:diagnosis"),
)


def options_of(user: User, q: str) -> list[tuple[Text, list[Option]]]:
    """Return the kinds of entries for ``user`` that match ``q``, each with its title and its entries.

    If ``q`` is "", all pages and actions are returned, but no objects.
    """
    of_lines = [option for verb in _LINE_ACTIONS for option in _on_lines(user, verb, q)]
    kinds = [
        (_("On a line"), of_lines),
        (_("Go to"), [each for each in _pages(user) if _fits(each, q)]),
        (_("Do"), [each for each in _actions(user) if _fits(each, q)]),
        *(_things(user, q) if len(q) >= _LEAST_LETTERS and not of_lines else ()),
    ]
    if q:
        everything = f"{reverse('web:search')}?{urlencode({'q': q})}"
        kinds.append((_("Search"), [Option(_("Search for “%(q)s”") % {"q": q}, everything)]))
    return [kind for kind in kinds if kind[1]]


def _fits(option: Option, q: str) -> bool:
    """Return whether the title contains all words of ``q``. Upper and lower case are not distinguished."""
    title = str(option.title).casefold()
    return all(word in title for word in q.casefold().split())


def _pages(user: User) -> Iterator[Option]:
    for page in pages_of(user):
        yield Option(page.title, reverse(page.name), note=f"g {page.key}" if page.key else "")


def _actions(user: User) -> Iterator[Option]:
    may: tuple[tuple[Callable[[User], bool], Text, str], ...] = (
        (permissions.may_order_for_anyone, _("Order a line"), "web:order"),
        (permissions.may_manage_teams, _("Invite somebody"), "web:teams"),
        (permissions.may_manage_teams, _("Add a webhook"), "web:webhook-add"),
        (permissions.may_sign_in, _("Create an API token"), "web:tokens"),
        (permissions.may_sign_in, _("Change your password"), "account_change_password"),
        (permissions.may_sign_in, _("Change your e-mail address"), "web:email-change"),
        *((permissions.may_run_the_network, kind.add, f"web:noc-{kind.slug}-add") for kind in KINDS),
    )
    for permission, title, page in may:
        if permission(user):
            yield Option(title, reverse(page))
    yield Option(_("Switch between light and dark"), press="theme-toggle")
    yield Option(_("Sign out"), press="sign-out")


def _on_lines(user: User, do: _LineAction, q: str) -> Iterator[Option]:
    """Yield an action for each line that matches ``q`` and allows the action.

    ``suspend zur`` finds lines with "zur" in their name. A verb alone finds the newest lines.
    """
    verb, _space, name = q.partition(" ")
    if len(verb) < _LEAST_LETTERS or not str(do.verb).casefold().startswith(verb.casefold()):
        return
    lines = lines_found(user, name.strip()) if name.strip() else queries.vlls(user)
    for vll in lines.exclude(lifecycle__in=TERMINAL_LIFECYCLES)[:OPTIONS_SHOWN]:
        if not do.action or _may(user, vll, do.action):
            yield Option(do.sentence % {"line": vll}, reverse(do.page, args=[vll.pk]), note=str(vll.customer))


def _may(user: User, vll: Vll, action: str) -> bool:
    newest = vll.orders.order_by("-ordered_at", "-id").first()
    return action in actions_of(vll, newest) and permissions.may_order(user, vll.customer)


def _order_text(order: Order) -> str:
    return _("%(action)s %(line)s") % {"action": order.get_action_display(), "line": order.vll}


def _things(user: User, q: str) -> Iterable[tuple[Text, list[Option]]]:
    lines = lines_found(user, q)[:OPTIONS_SHOWN]
    yield (_("Lines"), [_thing(vll, "web:vll", vll.pk, vll.customer) for vll in lines])
    orders = queries.orders(user).filter(orders_found(q))[:OPTIONS_SHOWN]
    yield (
        _("Orders"),
        [
            _thing(_order_text(order), "web:noc-order", order.pk, order.customer)
            if user.is_noc
            else _thing(_order_text(order), "web:vll", order.vll_id, "")
            for order in orders
        ],
    )
    for each in others_found(user, q, shown=OPTIONS_SHOWN):
        yield (each.title, [Option(str(row), address) for row, address in each.rows])


def _thing(name: Any, page: str, pk: Any, note: Any) -> Option:
    return Option(str(name), reverse(page, args=[pk]), note=str(note))


@requires(permissions.may_sign_in)
@require_safe
def palette(request: SignedInRequest) -> HttpResponse:
    """Return the dialog of the palette; with ``?q=`` only the list of matching entries."""
    q = request.GET.get("q", "").replace("\0", "").strip()[:LONGEST_SEARCH]
    kinds = options_of(request.user, q)
    context = {"kinds": kinds, "count": sum(len(options) for _title, options in kinds)}
    template = "command_palette/_options.html" if "q" in request.GET else "command_palette/_palette.html"
    return render(request, template, context)


@requires(permissions.may_sign_in)
def shortcuts(request: SignedInRequest) -> HttpResponse:
    """Show the keyboard shortcuts. A request of htmx, which the key "?" sends, gets only the dialog."""
    template = "keyboard_shortcuts/_shortcuts.html" if request.htmx else "keyboard_shortcuts/shortcuts.html"
    return render(request, template, {"pages": [page for page in pages_of(request.user) if page.key]})
