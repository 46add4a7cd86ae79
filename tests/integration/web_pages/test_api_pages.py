"""The pages about the API: each operation once, small, public, and readable without scripts."""

import html
import re

import pytest
from django.test import Client

from portal.accounts.models import User
from portal.api.openapi.document import GROUPS, document
from portal.api.openapi.reference import METHODS
from portal.api.problem_details import entries
from portal.web.page.units import code_marked, paragraphs

pytestmark = pytest.mark.django_db
MOST_BYTES = 300_000
INDEX, ERRORS = "/api/docs/", "/api/docs/errors/"
PAGES = [f"{INDEX}{slug}/" for slug in GROUPS]


def read(address: str, reader: User | None = None) -> str:
    client = Client()
    if reader is not None:
        client.force_login(reader)
    return client.get(address).content.decode()


def operations() -> list[tuple[str, str, str]]:
    """Return the tag, the fragment and the path of each operation."""
    return [
        (item[method]["tags"][0], item[method]["operationId"], path)
        for path, item in document()["paths"].items()
        for method in METHODS
        if method in item
    ]


def test_every_tag_of_the_schema_is_in_one_group() -> None:
    tags = [tag for group in GROUPS.values() for tag in group.tags]
    assert len(tags) == len(set(tags))
    assert set(tags) == {tag for tag, _, _ in operations()}


def test_every_operation_is_on_its_groups_page_and_linked_from_the_index() -> None:
    """The index keeps the fragments of the former page with all operations, so that old links still work."""
    group_of = {tag: slug for slug, group in GROUPS.items() for tag in group.tags}
    index, pages = read(INDEX), {slug: read(f"{INDEX}{slug}/") for slug in GROUPS}
    for tag, fragment, path in operations():
        slug = group_of[tag]
        assert index.count(f'<li id="{fragment}">') == 1
        assert f'href="/api/docs/{slug}/#{fragment}"' in index
        assert [each for each in pages if f'id="{fragment}"' in pages[each]] == [slug]
        assert path in index
        assert path in pages[slug]


@pytest.mark.parametrize("address", [INDEX, ERRORS, *PAGES])
def test_page_is_small_and_meets_the_content_policy(address: str, alice: User) -> None:
    for reader in (None, alice):
        page = read(address, reader)
        assert 1000 < len(page.encode()) <= MOST_BYTES
        assert "<script>" not in page
        assert 'src="http' not in page
    assert "default-src 'self'" in Client().get(address)["Content-Security-Policy"]


@pytest.mark.parametrize("address", [INDEX, ERRORS, *PAGES])
def test_no_back_quote_is_shown(address: str) -> None:
    page = read(address)
    prose = re.sub(r"<pre.*?</pre>", "", page.split("<main")[1], flags=re.DOTALL)
    assert "`" not in prose
    assert "<code>" in prose


@pytest.mark.parametrize("address", [INDEX, *PAGES])
def test_links_of_a_page_lead_to_existing_targets(address: str, alice: User) -> None:
    page = read(address, alice)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)
    assert set(re.findall(rf'href="{ERRORS}#([^"]+)"', page)) <= {entry.code for entry in entries()}
    assert set(re.findall(r'\bfor="([^"]+)"', page)) <= set(ids)


def test_operation_shows_everything_needed_to_send_it() -> None:
    page = read("/api/docs/lines/")
    ordering = html.unescape(page.split('id="vlls_create"')[1].split("</section>")[0])
    for part in (
        "Order a new VLL.",
        "the scope <code>order</code>",
        "<code>Idempotency-Key</code>",
        "<code>a_end.port</code>",
        '"any"',
        "at most 100 characters",
        "<strong>required</strong>",
        "<code>202</code>",
        "Location, Retry-After",
        'href="#schema-Order"',
        'href="#schema-Vll"',
        "<code>similar_orders</code>",
        'href="/api/docs/errors/#vlan-taken"',
        "curl --request POST http://testserver/api/v1/vlls",
        "httpx.post(",
        "http --auth-type bearer",
    ):
        assert part in ordering, part


def test_search_finds_operations_by_path_sentence_and_group() -> None:
    assert "holds_create" in read("/api/docs/?q=post+hold")
    assert "vlls_create" not in read("/api/docs/?q=post+hold")
    assert "holds_renew_create" in read("/api/docs/?q=900+s")
    assert "links_losses_retrieve" in read("/api/docs/?q=backbone")
    nothing = read("/api/docs/?q=%3Cb%3Enothing")
    assert "No operation has “&lt;b&gt;nothing” in" in nothing
    assert 'value="&lt;b&gt;nothing"' in nothing


def test_unknown_group_is_404() -> None:
    assert Client().get("/api/docs/nothing/").status_code == 404


def test_only_signed_in_users_can_try_operations(alice: User) -> None:
    assert "data-method=" not in read("/api/docs/holds/")
    assert "Sign in to try these operations here." in read("/api/docs/holds/")
    page = read("/api/docs/holds/", alice)
    assert page.count("data-method=") == 5
    assert "Sign in to try these operations here." not in page


def test_try_fields_have_no_name_and_are_never_submitted(alice: User) -> None:
    for slug in GROUPS:
        for form in re.findall(r"<form[^>]*data-method.*?</form>", read(f"{INDEX}{slug}/", alice), re.DOTALL):
            assert re.findall(r'\sname="', form) == []
    token = re.search(r'<input[^>]*id="try-token"[^>]*>', read("/api/docs/holds/", alice))
    assert token is not None
    assert " name=" not in token[0]


def test_operation_that_changes_something_needs_confirmation(alice: User) -> None:
    confirmed = {
        path: "data-confirm" in tag
        for slug in ("lines", "holds")
        for tag in re.findall(r"<form[^>]*data-method[^>]*>", read(f"{INDEX}{slug}/", alice))
        for path in [" ".join(re.findall(r'data-(?:method|path)="([^"]+)"', tag))]
    }
    assert not confirmed["GET /api/v1/vlls"]
    assert not confirmed["POST /api/v1/vlls/validate"]
    assert confirmed["POST /api/v1/vlls"]
    assert confirmed["DELETE /api/v1/holds/{id}"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("`a` and ``b``", "<code>a</code> and <code>b</code>"),
        ("<b>`<i>`", "&lt;b&gt;<code>&lt;i&gt;</code>"),
        ("one ` alone", "one ` alone"),
    ],
)
def test_code_is_marked_and_all_other_markup_is_escaped(text: str, shown: str) -> None:
    assert code_marked(text) == shown
    assert paragraphs(text) == f"<p>{shown}</p>"
