"""The pages about the API: what stands in back-quotes in its texts is shown as code."""

import re

import pytest
from django.test import Client

from portal.web.templatetags.backquotes import code_marked, paragraphs

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("address", ["/api/docs/", "/api/docs/errors/"])
def test_no_back_quote_is_shown(address: str) -> None:
    page = Client().get(address).content.decode()
    prose = re.sub(r"<pre.*?</pre>", "", page.split("<main")[1], flags=re.DOTALL)
    assert "`" not in prose
    assert "<code>" in prose


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("`a` and ``b``", "<code>a</code> and <code>b</code>"),
        ("<b>`<i>`", "&lt;b&gt;<code>&lt;i&gt;</code>"),
        ("one ` alone", "one ` alone"),
    ],
)
def test_code_is_marked_and_nothing_else_is_let_through(text: str, shown: str) -> None:
    assert code_marked(text) == shown
    assert paragraphs(text) == f"<p>{shown}</p>"
