"""A reader of pages for tests: signed in, and with words for what is on a page."""

import html
import re
from typing import Any

from django.test import Client

from portal.accounts.models import User


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def text(answer: Any) -> str:
    """The text that a reader reads: no tags, entities resolved, white space as single spaces."""
    bare = re.sub(r"<[^>]+>", " ", re.sub(r"</?bdi>", "", answer.content.decode()))
    return re.sub(r"\s+", " ", html.unescape(bare))


def save(client: Client, address: str, sent: dict[str, Any]) -> Any:
    """Open a form of the NOC's and send it filled in, as a browser does: with the version that it shows."""
    return client.post(address, {"version": version_in(client.get(address)), **sent})


def version_in(page: Any) -> str:
    """The version of the row that a form shows."""
    found = re.search(r'name="version" value="(\w+)"', page.content.decode())
    assert found
    return found[1]
