"""The documentation site at /docs/: only signed-in users read it; customers and staff get different sites."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from portal.accounts.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("documentation_sites")]


def read(user: User | None, path: str = "/docs/") -> Any:
    client = Client()
    if user is not None:
        client.force_login(user)
    return client.get(path, follow=True)


def body(response: Any) -> str:
    return b"".join(response.streaming_content).decode()


def test_customers_and_staff_read_separate_sites(alice: User, nina: User) -> None:
    assert "<title>customers</title>" in body(read(alice))
    assert "<title>staff</title>" in body(read(nina))
    assert read(alice, "/docs/customers/").status_code == 200
    assert read(alice, "/docs/routers/").status_code == 404
    assert read(nina, "/docs/routers").redirect_chain == [("/docs/routers/", 302)]


def test_sign_in_is_required() -> None:
    response = read(None)
    assert response.redirect_chain[0][0].startswith("/login/?next=/docs/")
    assert b"<title>staff" not in response.content


def test_files_have_their_type_and_are_not_cached_by_proxies(nina: User) -> None:
    response = read(nina, "/docs/searchindex.js")
    assert response.headers["Content-Type"] == "text/javascript"
    assert set(response.headers["Cache-Control"].split(", ")) == {"private", "max-age=300"}


@pytest.mark.parametrize("path", ["../secret", "..%2fsecret", "%2e%2e/secret", "/etc/hostname"])
def test_no_path_leaves_the_site(nina: User, path: str) -> None:
    response = read(nina, f"/docs/{path}")
    assert response.status_code in (400, 404)


@pytest.mark.parametrize("path", ["absent/", "absent", "x" * 300, "x" * 300 + "/", "%00", "routers/%00/"])
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
