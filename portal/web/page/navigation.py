"""The pages in the navigation, with the counts of the items that wait for the NOC.

One statement reads all counts, from partial indexes only.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from django import template
from django.conf import settings
from django.db.models import Count, QuerySet, Value
from django.http import HttpRequest
from django.template import Context
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import User
from portal.alarms.kinds import Kind
from portal.alarms.queries import unacknowledged
from portal.core import clock
from portal.diagnosis.models import TroubleReport
from portal.inventory.queries import Text
from portal.vll.models import Order
from portal.vll.states import OrderState
from portal.web.noc.inventory.inventory_kinds import CUSTOMERS, LINKS, PORTS, ROUTERS, SITES, VNI_RANGES
from portal.web.page.middleware import page_of

ALARMS, PENDING_APPROVAL, TROUBLE = "alarms", "pending_approval", "trouble"
# The number of alarms about items that other pages also list. This number is subtracted, so that each item
# counts once.
AGAIN = "again"
_LISTED_ELSEWHERE = (Kind.ORDER_PENDING_APPROVAL, Kind.TROUBLE)


def waiting_counts() -> dict[str, int]:
    """Return the number of waiting items by kind.

    The counts are not cached, so that a decision of the NOC is visible immediately.
    """
    alarms = unacknowledged(clock.now())
    waiting: dict[str, QuerySet[Any]] = {
        ALARMS: alarms,
        AGAIN: alarms.filter(kind__in=_LISTED_ELSEWHERE),
        PENDING_APPROVAL: Order.objects.filter(state=OrderState.PENDING_APPROVAL),
        TROUBLE: TroubleReport.objects.filter(closed_at__isnull=True),
    }
    counted = [
        rows.order_by().annotate(what=Value(what)).values("what").annotate(n=Count("pk"))
        for what, rows in waiting.items()
    ]
    all_of_them = reduce(lambda one, other: one.union(other, all=True), counted)
    return {row["what"]: row["n"] for row in all_of_them}


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the navigation.

    * ``name``: the name of its URL pattern.
    * ``key``: the letter that opens the page after "g"; "" without a shortcut.
    * ``below``: prefixes of the names of its subpages.
    * ``waits``: the count in portal.web.page.navigation to show next to the title; "" for no count.
    * ``is_used``: returns whether the page is shown with the current settings.
    """

    title: Text
    name: str
    key: str = ""
    below: tuple[str, ...] = ()
    waits: str = ""
    is_used: Callable[[], bool] = lambda: True


@dataclass(frozen=True, slots=True)
class Group:
    """A group of pages for one kind of work. ``slug``: the name of the group in HTML ids."""

    slug: str
    title: Text
    pages: tuple[Page, ...]


_LINE_PAGES = ("web:vll", "web:diagnosis", "web:activation-test")
_ORDER_PAGES = ("web:order", "web:reservation")
_TEAM = Page(_("Team"), "web:teams", "t", below=("web:team", "web:member", "web:invit"))
_WEBHOOKS = Page(_("Webhooks"), "web:webhooks", "w", below=("web:webhook",))

OF_CUSTOMERS = (
    Page(_("Overview"), "web:overview", "o", below=_LINE_PAGES),
    Page(_("Ports"), "web:ports", "p"),
    Page(_("Orders"), "web:orders", "d", below=_ORDER_PAGES),
    _TEAM,
    _WEBHOOKS,
)

OF_THE_NOC = (
    Group(
        "operate",
        _("Operate"),
        (
            Page(_("Alarms"), "web:noc", "a", below=("web:noc-alarm", "web:noc-wall"), waits=ALARMS),
            Page(_("Map"), "web:noc-map", "m"),
            Page(_("Lines"), "web:overview", "l", below=_LINE_PAGES),
            Page(_("Orders"), "web:orders", "d", below=_ORDER_PAGES),
            Page(
                _("Orders pending approval"),
                "web:noc-orders",
                "h",
                below=("web:noc-order",),
                waits=PENDING_APPROVAL,
            ),
            Page(_("Trouble reports"), "web:noc-trouble", "u", waits=TROUBLE),
            Page(_("Router status"), "web:routers", "r"),
        ),
    ),
    Group(
        "inventory",
        _("Inventory"),
        (
            Page(SITES.title, "web:noc-sites", "s", below=("web:noc-sites",)),
            Page(ROUTERS.title, "web:noc-routers", "i", below=("web:noc-router",)),
            Page(PORTS.title, "web:noc-ports", "p", below=("web:noc-ports", "web:port")),
            Page(LINKS.title, "web:noc-links", "k", below=("web:noc-links",)),
            Page(
                _("Found lines"), "web:noc-found-lines", "f", below=("web:noc-adopt", "web:noc-adopt-several")
            ),
            Page(_("Import"), "web:noc-imports", below=("web:noc-import",)),
            Page(_("Pools"), "web:noc-pools"),
            Page(VNI_RANGES.title, "web:noc-vni-ranges", below=("web:noc-vni-ranges",)),
            Page("NetBox", "web:noc-netbox", "n", is_used=lambda: bool(settings.NETBOX_URL)),
        ),
    ),
    Group(
        "customers",
        _("Customers"),
        (
            Page(CUSTOMERS.title, "web:noc-customers", "c", below=("web:noc-customer",)),
            Page(_("Teams"), "web:teams", "t", below=_TEAM.below),
            _WEBHOOKS,
            Page(_("NOC staff"), "web:noc-staff", below=("web:noc-staff", "web:noc-person")),
            Page(_("Audit"), "web:noc-audit"),
        ),
    ),
)

OF_THE_ACCOUNT = (
    Page(_("Account"), "web:account", below=("web:account-", "web:email-change", "account_", "mfa_")),
    Page(_("Notifications"), "web:notifications"),
    Page(_("API tokens"), "web:tokens", below=("web:token",)),
    Page(_("Documentation"), "web:documentation"),
    Page(_("API reference"), "api-docs", below=("api-errors",)),
    Page(_("Keyboard shortcuts"), "web:shortcuts"),
)


def groups_of(user: User) -> tuple[Group, ...]:
    """Return the groups of pages for ``user``. Customers have a single group without a title."""
    return OF_THE_NOC if user.is_noc else (Group("main", "", OF_CUSTOMERS),)


def pages_of(user: User) -> list[Page]:
    """Return all pages of the navigation for ``user``, in order, with the pages of the account at the end."""
    of_all = (page for group in groups_of(user) for page in group.pages)
    return [page for page in (*of_all, *OF_THE_ACCOUNT) if page.is_used()]


def page_at(name: str, pages: Iterable[Page]) -> Page | None:
    """Return the page that has the view ``name``, or that has it as a subpage. If there is no such page,
    return None.

    If several pages match, the longest match counts.
    """
    return max(
        (page for page in pages if _fits(page, name)), key=lambda page: _fits(page, name), default=None
    )


def waiting_at(group: Group, counts: Mapping[str, int]) -> int:
    """Return the number of items that wait on the pages of a group.

    An item and the alarm about it count only once.
    """
    waiting = {page.waits: counts.get(page.waits, 0) for page in group.pages}
    return sum(waiting.values()) - (counts.get(AGAIN, 0) if ALARMS in waiting else 0)


def _fits(page: Page, name: str) -> int:
    """Return the length of the match between ``name`` and the page; 0 without a match."""
    if name == page.name:
        return len(name) + 1
    return max((len(begins) for begins in page.below if name.startswith(begins)), default=0)


register = template.Library()


@register.simple_tag(takes_context=True)
def navigation(context: Context) -> dict[str, Any] | None:
    """Return the navigation. Return None if nobody is signed in, or on an error page that knows no user.

    ``here``: the group of the open page; None if it has no group with a title.
    """
    request: Any = context.get("request")
    user = getattr(request, "user", None)
    if not isinstance(user, User):
        return None
    match = request.resolver_match
    name = match.view_name if match else ""
    counts = waiting_counts() if user.is_noc else {}
    groups = [_link_group(group, name, counts) for group in groups_of(user)]
    return {
        "groups": groups,
        "account": _links(OF_THE_ACCOUNT, name, {}),
        "waiting": sum(group["waiting"] for group in groups),
        "here": next((group for group in groups if group["is_current"] and group["title"]), None),
    }


@register.simple_tag(takes_context=True)
def page_address(context: Context) -> str:
    """Return the address of the open page; "" on error pages without a request."""
    request: Any = context.get("request")
    return page_of(request) if isinstance(request, HttpRequest) else ""


def _link_group(group: Group, name: str, counts: Mapping[str, int]) -> dict[str, Any]:
    """Return a group of links. ``is_current``: whether the open page belongs to the group."""
    links = _links(group.pages, name, counts)
    is_current = any(link["current"] for link in links)
    waiting = waiting_at(group, counts)
    return {
        "slug": group.slug,
        "title": group.title,
        "pages": links,
        "waiting": waiting,
        "is_current": is_current,
    }


def _links(pages: tuple[Page, ...], name: str, counts: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the links of the navigation.

    ``current``: "page" for the open page, "true" if the open page is one of its subpages, otherwise "".
    ``waiting``: the number of items that wait on the page.
    """
    here = page_at(name, pages)
    return [
        {
            "title": page.title,
            "url": reverse(page.name),
            "key": page.key,
            "current": "" if page is not here else "page" if page.name == name else "true",
            "waiting": counts.get(page.waits, 0),
        }
        for page in pages
        if page.is_used()
    ]
