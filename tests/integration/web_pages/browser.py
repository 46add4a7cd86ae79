"""A signed-in reader of pages for tests, with functions that read parts of a page."""

import html
import re
import time
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client

from portal.accounts.models import User


def session_of(user: User, *, reauthenticated: bool = False) -> str:
    """Return the key of a session like the session after a sign-in.

    It takes one statement, because thousands of tests use it. ``reauthenticated``: the user has just entered
    the password, which actions that give access need.
    """
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    if reauthenticated:
        # As allauth records it (allauth/account/internal/flows/login.py).
        session["account_authentication_methods_user"] = str(user.pk)
        entered = {"method": "password", "at": time.time(), "reauthenticated": True}
        session["account_authentication_methods"] = [entered]
    session.create()
    return str(session.session_key)


def signed_in(user: User, *, reauthenticated: bool = False) -> Client:
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = session_of(user, reauthenticated=reauthenticated)
    return client


def text(response: Any) -> str:
    """Return the text that a reader sees: no tags, entities resolved, white space as single spaces."""
    bare = re.sub(r"<[^>]+>", " ", re.sub(r"</?bdi>", "", response.content.decode()))
    return re.sub(r"\s+", " ", html.unescape(bare))


def save(client: Client, address: str, sent: dict[str, Any]) -> Any:
    """Open a form of the NOC and send it filled in, as a browser does, with the form's version."""
    return client.post(address, {"version": version_in(client.get(address)), **sent})


def version_in(page: Any) -> str:
    """Return the version of the row that a form shows."""
    found = re.search(r'name="version" value="(\w+)"', page.content.decode())
    assert found
    return found[1]


# A live part in the HTML of a page.
_PART = re.compile(
    r'<div id="(?P<id>[\w-]+)"(?: class="ll-stack")? hx-get="(?P<url>[^"]+)" hx-swap="outerHTML" '
    r'hx-headers="\{&quot;X-Seen&quot;: &quot;(?P<seen>\w+)&quot;\}" data-live="(?P<about>[^"]+)"'
)


def part_of(answer: Any) -> re.Match[str]:
    found = _PART.search(answer.content.decode())
    assert found, "no part of this page is live"
    return found


def ask_again(browser: Client, part: re.Match[str], headers: dict[str, str] | None = None) -> Any:
    """Request the page again as htmx does."""
    of_htmx = {"HX-Request": "true", "HX-Target": part["id"], "X-Seen": part["seen"]}
    return browser.get(part["url"].replace("&amp;", "&"), headers=of_htmx | (headers or {}))
