"""The documentation site at /docs/: only signed-in users read it; customers and staff get different sites."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from portal.accounts.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def sites(tmp_path: Path, settings: Any) -> Path:
    settings.LONGLINE_DOCS_DIR = tmp_path / "docs"
    for site, folder in (("staff", "operate"), ("customers", "customers")):
        for page in (settings.LONGLINE_DOCS_DIR / site, settings.LONGLINE_DOCS_DIR / site / folder):
            page.mkdir(parents=True, exist_ok=True)
            (page / "index.html").write_text(f"<title>for {site}</title>")
    (settings.LONGLINE_DOCS_DIR / "staff" / "searchindex.js").write_text("Search.setIndex({})")
    (tmp_path / "secret").write_text("secret")
    return tmp_path


def read(user: User | None, path: str = "/docs/") -> Any:
    client = Client()
    if user is not None:
        client.force_login(user)
    return client.get(path, follow=True)


def body(response: Any) -> str:
    return b"".join(response.streaming_content).decode()


def test_customers_and_staff_read_separate_sites(alice: User, nina: User) -> None:
    assert body(read(alice)) == "<title>for customers</title>"
    assert body(read(nina)) == "<title>for staff</title>"
    assert read(alice, "/docs/operate/").status_code == 404
    assert read(nina, "/docs/operate").redirect_chain == [("/docs/operate/", 302)]


def test_sign_in_is_required() -> None:
    response = read(None)
    assert response.redirect_chain[0][0].startswith("/login/?next=/docs/")
    assert b"for staff" not in response.content


def test_files_have_their_type_and_are_not_cached_by_proxies(nina: User) -> None:
    response = read(nina, "/docs/searchindex.js")
    assert response.headers["Content-Type"] == "text/javascript"
    assert set(response.headers["Cache-Control"].split(", ")) == {"private", "max-age=300"}


@pytest.mark.parametrize("path", ["../secret", "..%2fsecret", "%2e%2e/secret", "/etc/hostname"])
def test_no_path_leaves_the_site(nina: User, path: str) -> None:
    response = read(nina, f"/docs/{path}")
    assert response.status_code in (400, 404)


@pytest.mark.parametrize("path", ["absent/", "absent", "x" * 300, "x" * 300 + "/", "%00", "operate/%00/"])
def test_paths_without_a_file_are_not_found(nina: User, path: str) -> None:
    assert read(nina, f"/docs/{path}").status_code == 404


def test_portal_without_the_site_shows_staff_how_to_build_it(
    settings: Any, tmp_path: Path, alice: User, nina: User
) -> None:
    settings.LONGLINE_DOCS_DIR = tmp_path / "missing"
    for_staff, for_customers = read(nina), read(alice)
    assert for_staff.status_code == for_customers.status_code == 404
    assert "make docs" in for_staff.content.decode()
    assert str(tmp_path) not in for_customers.content.decode()
