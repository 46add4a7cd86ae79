"""The command palette: a list of pages, objects and actions that match the typed text."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from portal.accounts import permissions
from portal.accounts.models import User
from portal.inventory.queries import Text
from portal.vll import queries
from portal.vll.models import Order, Vll
from portal.vll.queries import orders_found
from portal.vll.states import TERMINAL_LIFECYCLES
from portal.web.lines.line_progress import actions_of
from portal.web.lists import lines_found, others_found
from portal.web.noc.inventory.inventory_kinds import KINDS
from portal.web.page.list_filters import LONGEST_SEARCH
from portal.web.page.navigation import pages_of
from portal.web.page.page_guard import SignedInRequest, requires

# The maximum number of entries for each kind of object. The search page shows more.
SHOWN = 5
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
    _LineAction(gettext_lazy("Change"), gettext_lazy("Change %(line)s"), "change", "web:vll-change"),
    _LineAction(gettext_lazy("Suspend"), gettext_lazy("Suspend %(line)s"), "suspend", "web:vll-suspend"),
    _LineAction(gettext_lazy("Remove"), gettext_lazy("Remove %(line)s"), "remove", "web:vll-remove"),
    _LineAction(gettext_lazy("Test"), gettext_lazy("Test %(line)s"), "test", "web:vll-test"),
    _LineAction(gettext_lazy("Diagnose"), gettext_lazy("Diagnose %(line)s"), "", "web:diagnosis"),
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
    for vll in lines.exclude(lifecycle__in=TERMINAL_LIFECYCLES)[:SHOWN]:
        if not do.action or _may(user, vll, do.action):
            yield Option(do.sentence % {"line": vll}, reverse(do.page, args=[vll.pk]), note=str(vll.customer))


def _may(user: User, vll: Vll, action: str) -> bool:
    newest = vll.orders.order_by("-ordered_at", "-id").first()
    return action in actions_of(vll, newest) and permissions.may_order(user, vll.customer)


def _order_text(order: Order) -> str:
    return _("%(action)s %(line)s") % {"action": order.get_action_display(), "line": order.vll}


def _things(user: User, q: str) -> Iterable[tuple[Text, list[Option]]]:
    lines = lines_found(user, q)[:SHOWN]
    yield (_("Lines"), [_thing(vll, "web:vll", vll.pk, vll.customer) for vll in lines])
    orders = queries.orders(user).filter(orders_found(q))[:SHOWN]
    yield (
        _("Orders"),
        [
            _thing(_order_text(order), "web:noc-order", order.pk, order.customer)
            if user.is_noc
            else _thing(_order_text(order), "web:vll", order.vll_id, "")
            for order in orders
        ],
    )
    for found in others_found(user, q, shown=SHOWN):
        yield (found.title, [Option(str(row), address) for row, address in found.rows])


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
