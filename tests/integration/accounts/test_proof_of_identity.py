"""An open session alone neither gives nor removes access, on pages and in the API."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db.models import Model
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from rest_framework.permissions import SAFE_METHODS

from portal.accounts.models import ApiToken, Customer, Invitation, Membership, User
from portal.accounts.tokens import token_create
from portal.api.rest.access_control import ProvesIdentity
from portal.core import clock
from tests.integration.accounts.test_sign_in import PASSWORD
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db

INVITATION = {"customer": "Alpine Dairy", "email": "dora@dairy.example", "role": "admin"}
# Each operation of the API that gives or removes access: method, path, body, and the status of its success.
OPERATIONS: dict[tuple[str, str], tuple[Any, int]] = {
    ("post", "/api/v1/tokens"): ({"name": "x", "scopes": ["read"]}, 201),
    ("post", "/api/v1/invitations"): (INVITATION, 201),
    ("patch", "/api/v1/members/<int:pk>"): ({"role": "admin"}, 200),
    ("delete", "/api/v1/members/<int:pk>"): (None, 204),
    ("post", "/api/v1/people/<int:pk>/close"): (None, 200),
    ("delete", "/api/v1/customers/<int:pk>"): (None, 204),
    ("post", "/api/v1/customers/<int:pk>/reopen"): (None, 200),
}
PAGES: dict[str, dict[str, str]] = {
    "/account/tokens/": {"name": "x", "scope": "read", "days": "30"},
    "/noc/customers/{id}/remove/": {},
    "/noc/customers/{id}/reopen/": {},
}


@pytest.fixture
def place(bob: User, dairy: Customer, bakery: Customer) -> Callable[[str], str]:
    """The address of an object that the operation of a path changes."""
    membership = bob.memberships.get().pk
    ids = {"members": membership, "people": bob.pk, "customers": bakery.pk}

    def address(path: str) -> str:
        if path.endswith(("reopen", "reopen/")):
            Customer.objects.filter(pk=bakery.pk).update(retired_at=clock.now())
        kind = next((kind for kind in ids if f"/{kind}/" in path), "")
        number = str(ids.get(kind, ""))
        return path.replace("<int:pk>", number).replace("{id}", number)

    return address


def rows() -> list[Any]:
    """Return what the operations change."""
    models: list[type[Model]] = [ApiToken, Invitation, Membership]
    counts = [model._default_manager.count() for model in models]
    roles = list(Membership.objects.order_by("pk").values_list("pk", "role"))
    active = list(User.objects.order_by("pk").values_list("pk", "is_active"))
    return [counts, roles, active, list(Customer.objects.order_by("pk").values_list("pk", "retired_at"))]


def send(client: Client, method: str, address: str, body: Any, **headers: str) -> Any:
    headers["If-Match"] = "*"
    body = "" if body is None else body
    return getattr(client, method)(address, body, content_type="application/json", headers=headers)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
class TestApi:
    def test_an_open_session_alone_is_refused(
        self, place: Callable[[str], str], nina: User, method: str, path: str
    ) -> None:
        address, before = place(path), rows()
        answer = send(signed_in(nina), method, address, OPERATIONS[method, path][0])
        assert answer.status_code == 403, answer.content
        assert answer.json()["type"].endswith("#identity-not-verified")
        assert "/login/again/" in answer.json()["detail"]
        assert rows() == before

    def test_a_session_with_the_password_is_accepted(
        self, place: Callable[[str], str], nina: User, method: str, path: str
    ) -> None:
        body, status = OPERATIONS[method, path]
        address, before = place(path), rows()
        answer = send(signed_in(nina, reauthenticated=True), method, address, body)
        assert answer.status_code == status, answer.content
        assert rows() != before

    def test_a_password_entered_long_ago_is_refused(
        self, place: Callable[[str], str], nina: User, settings: Any, method: str, path: str
    ) -> None:
        settings.ACCOUNT_REAUTHENTICATION_TIMEOUT = 0
        answer = send(signed_in(nina, reauthenticated=True), method, place(path), OPERATIONS[method, path][0])
        assert answer.status_code == 403, answer.content

    def test_a_token_needs_no_password(
        self, place: Callable[[str], str], nina: User, method: str, path: str
    ) -> None:
        _, plain = token_create(user=nina, name="all", now=clock.now())
        body, status = OPERATIONS[method, path]
        answer = send(Client(), method, place(path), body, Authorization=f"Bearer {plain}")
        assert answer.status_code == status, answer.content


def test_a_session_reads_and_makes_other_changes_without_the_password(nina: User, bakery: Customer) -> None:
    client, address = signed_in(nina), f"/api/v1/customers/{bakery.pk}"
    for path in ("/api/v1/tokens", "/api/v1/members", "/api/v1/invitations", address):
        assert client.get(path).status_code == 200
    assert send(client, "patch", address, {"cooling_off_s": 60}).status_code == 200


def operations_with_proof(resolver: URLResolver, prefix: str = "/") -> Iterator[tuple[str, str]]:
    """Yield (method, path) of every operation of the API that requires proof of identity."""
    for entry in resolver.url_patterns:
        path = f"{prefix}{entry.pattern}"
        if isinstance(entry, URLResolver):
            yield from operations_with_proof(entry, path)
            continue
        assert isinstance(entry, URLPattern)
        view = getattr(entry.callback, "cls", None)
        if view is not None and ProvesIdentity in view.permission_classes:
            offered = {method for method in view.http_method_names if hasattr(view, method)}
            requested = {method.lower() for method in getattr(view, "proves_identity_for", ())} or offered
            yield from ((method, path) for method in requested - {each.lower() for each in SAFE_METHODS})


def test_every_operation_with_proof_is_tested_here() -> None:
    assert set(operations_with_proof(get_resolver())) == set(OPERATIONS)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_acts_only_after_the_password(place: Callable[[str], str], nina: User, path: str) -> None:
    client, address = signed_in(nina), place(path)
    before = rows()
    again = client.post(address, PAGES[path])["Location"]
    assert again.startswith("/login/again/?next=")
    assert rows() == before
    assert "Enter your password" in text(client.get(again))
    client.post(again, {"password": "wrong"})
    assert rows() == before
    answer = client.post(again, {"password": PASSWORD}, follow=True)
    assert answer.status_code == 200
    assert rows() != before


@pytest.mark.parametrize("method", ["get", "head"])
@pytest.mark.parametrize("path", [path for path in PAGES if not path.endswith("reopen/")])
def test_a_page_is_read_without_the_password(
    place: Callable[[str], str], nina: User, path: str, method: str
) -> None:
    assert getattr(signed_in(nina), method)(place(path)).status_code == 200


def test_a_refused_form_is_sent_to_its_own_page_after_the_password(nina: User) -> None:
    """The response comes from the address of the password, which does not accept the form."""
    client = signed_in(nina)
    again = client.post("/account/tokens/", {"name": "", "scope": "read", "days": "30"})["Location"]
    answer = client.post(again, {"password": PASSWORD})
    assert answer.status_code == 422
    assert '<form method="post" action="/account/tokens/"' in answer.content.decode()


def test_a_refused_removal_is_sent_to_its_own_page_after_the_password(
    nina: User, dairy: Customer, isp: Any
) -> None:
    client, address = signed_in(nina), f"/noc/customers/{dairy.pk}/remove/"
    answer = client.post(client.post(address)["Location"], {"password": PASSWORD})
    assert answer.status_code == 409
    assert f'action="{address}"' in answer.content.decode()
