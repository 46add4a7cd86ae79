"""The documentation site in a browser, as `make docs` built it."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from portal.accounts.models import User
from tests.browser.reader import Reader


@pytest.mark.parametrize(
    ("name", "word", "page"), [("alice", "bandwidth", "customers/"), ("nina", "drain", "")]
)
def test_a_reader_finds_a_page_by_search_and_reads_it_in_dark_mode(
    live_server: Any, alice: User, nina: User, reader: Callable[..., Reader], name: str, word: str, page: str
) -> None:
    person = reader(live_server.url)
    person.be_signed_in(name)
    person.open("/docs/")
    expect(person.page).to_have_url(f"{live_server.url}/docs/{page}README/")
    person.page.locator("button.theme-toggle:visible").first.click()
    background = "getComputedStyle(document.body).backgroundColor"
    expect(person.page.locator("body")).to_have_attribute("data-theme", "dark")
    assert person.page.evaluate(background) != "rgb(255, 255, 255)"
    person.page.locator("input[name=q]").first.fill(word)
    person.page.keyboard.press("Enter")
    found = person.page.locator("#search-results li a").first
    found.wait_for()
    found.click()
    expect(person.page.locator("article")).to_contain_text(word, ignore_case=True)
    assert person.complaints == []
