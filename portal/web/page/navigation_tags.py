"""Template tags for the navigation: the pages of portal.web.page.navigation with addresses and counts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import template
from django.http import HttpRequest
from django.template import Context
from django.urls import reverse

from portal.accounts.models import User
from portal.web.page.list_filters import Text
from portal.web.page.navigation import (
    OF_THE_ACCOUNT,
    Group,
    Page,
    groups_of,
    page_at,
    waiting_at,
    waiting_counts,
)
from portal.web.page.partial_requests import page_of

register = template.Library()


@dataclass(frozen=True, slots=True)
class Link:
    """A link of the navigation.

    ``current``: "page" for the open page, "true" if the open page is one of its subpages, otherwise "".
    ``waiting``: the number of items that wait on the page.
    """

    title: Text
    url: str
    key: str
    current: str
    waiting: int


@dataclass(frozen=True, slots=True)
class LinkGroup:
    """A group of links. ``is_current``: whether the open page belongs to the group."""

    slug: str
    title: Text
    pages: list[Link]
    waiting: int
    is_current: bool


@dataclass(frozen=True, slots=True)
class Navigation:
    """The navigation. ``here``: the group of the open page; None if it has no group with a title."""

    groups: list[LinkGroup]
    account: list[Link]
    waiting: int
    here: LinkGroup | None


@register.simple_tag(takes_context=True)
def navigation(context: Context) -> Navigation | None:
    """Return the navigation. Return None if nobody is signed in, or on an error page that knows no user."""
    request: Any = context.get("request")
    user = getattr(request, "user", None)
    if not isinstance(user, User):
        return None
    match = request.resolver_match
    name = match.view_name if match else ""
    counts = waiting_counts() if user.is_noc else {}
    groups = [_link_group(group, name, counts) for group in groups_of(user)]
    return Navigation(
        groups=groups,
        account=_links(OF_THE_ACCOUNT, name, {}),
        waiting=sum(group.waiting for group in groups),
        here=next((group for group in groups if group.is_current and group.title), None),
    )


@register.simple_tag(takes_context=True)
def page_address(context: Context) -> str:
    """Return the address of the open page; "" on error pages without a request."""
    request: Any = context.get("request")
    return page_of(request) if isinstance(request, HttpRequest) else ""


def _link_group(group: Group, name: str, counts: Mapping[str, int]) -> LinkGroup:
    links = _links(group.pages, name, counts)
    is_current = any(link.current for link in links)
    return LinkGroup(group.slug, group.title, links, waiting_at(group, counts), is_current)


def _links(pages: tuple[Page, ...], name: str, counts: Mapping[str, int]) -> list[Link]:
    here = page_at(name, pages)
    return [
        Link(
            title=page.title,
            url=reverse(page.name),
            key=page.key,
            current="" if page is not here else "page" if page.name == name else "true",
            waiting=counts.get(page.waits, 0),
        )
        for page in pages
        if page.is_used()
    ]
